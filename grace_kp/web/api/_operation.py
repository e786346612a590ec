"""Operations of the API. One description drives the route, the checks of parameters and bodies, and the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic import ValidationError

from grace_kp.errors import GraceError, InvalidTrace, brief
from grace_kp.trace import refuse_what_json_cannot_hold
from grace_kp.web._parameter import read_all
from grace_kp.web._person import Right
from grace_kp.web._problem import Problem, problem_of
from grace_kp.web._route import route
from grace_kp.web._site import body_of, person_of, site_of
from grace_kp.web.api._json import json_response, json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.web._parameter import Parameter
    from grace_kp.web._person import Person
    from grace_kp.web._route import PageRoute
    from grace_kp.web._site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to an operation, checked."""

    request: Request
    values: Mapping[str, Any]
    """The parameters by name; those that the address does not state and that have no default are missing."""
    body: Any = None
    """The body as the model of the operation."""

    @property
    def id(self) -> str:
        """The id in the address."""
        return str(self.request.path_params["id"])

    @property
    def site(self) -> Site:
        """The site that the operation works on."""
        return site_of(self.request)

    @property
    def person(self) -> Person:
        """Who calls. Operations that are open to anybody do not ask."""
        return person_of(self.request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """JSON that is there as text already."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one address."""

    name: str
    """The `operationId`."""
    path: str
    """With `{id}` where the address holds an id."""
    right: Right
    summary: str
    description: str = ""
    answer: Callable[[Call], Any]
    """Returns JSON, or `Text`. Raises `Problem` or an error of this library."""
    result: type
    """Type of the result."""
    method: str = "GET"
    status: int = 200
    parameters: tuple[Parameter, ...] = ()
    body: type[BaseModel] | None = None
    problems: tuple[str, ...] = ()
    """Codes of the problems that are its own, beside those that every operation has."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """A body."""
    id_example: str = ""

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all problems that a response can state."""
        own = [*self.problems, "invalid", "unavailable", "too_long"]
        if self.right is not Right.ANYBODY:
            own += ["unauthenticated", "forbidden", "too_many_requests"]
        if self.body is not None:
            own += ["bad_request", "too_slow", "too_large", "unsupported_media_type"]
        if "{id}" in self.path:
            own += ["not_found"]
        return tuple(dict.fromkeys(own))

    def route(self) -> PageRoute:
        """Return the route."""
        respond = self.respond_at_once if self.right is Right.ANYBODY else self.respond
        return route(self.path, respond, self.right, methods=(self.method,))

    async def respond_at_once(self, request: Request) -> Response:
        """Answer a request in a thread that others do not occupy, such as those that wait for a locked store."""
        return await to_thread.run_sync(self.respond, request, limiter=site_of(request).own_threads)

    def respond(self, request: Request) -> Response:
        """Answer a request."""
        try:
            result = self.answer(Call(request=request, values=self._values(request), body=self._body(request)))
        except (GraceError, Problem) as error:
            request.scope["grace_kp.error"] = type(error).__name__  # for the record of refused decisions
            problem = error if isinstance(error, Problem) else problem_of(error, task=f"{self.method} {self.path}")
            return json_response(json_text(problem.document), problem.status)
        return json_response(result.text if isinstance(result, Text) else json_text(result), self.status)

    def _values(self, request: Request) -> dict[str, Any]:
        items = request.query_params.multi_items()
        values, problems = read_all(self.parameters, items)
        known = [parameter.name for parameter in self.parameters]
        for name, _ in items:
            if name not in known:
                problems[name] = f"is no parameter; known are {', '.join(known) or 'none'}"
        if problems:
            raise _invalid("parameter", problems)
        return values

    def _body(self, request: Request) -> Any:
        if self.body is None:
            return None
        document = body_of(request)
        if document is None:
            raise Problem("invalid", "the request needs a body, a JSON object with the content type application/json")
        try:
            refuse_what_json_cannot_hold(document)
            return self.body.model_validate(document)
        except InvalidTrace as error:
            raise Problem("invalid", f"the body cannot be used: {error}") from None
        except ValidationError as error:
            raise _invalid("field", _problems_in(error, self.body)) from None


def _invalid(what: str, problems: Mapping[str, str]) -> Problem:
    name, problem = next(iter(problems.items()))
    more = len(problems) - 1
    others = f"; {more} more {what}{'' if more == 1 else 's'} cannot be used" if more else ""
    return Problem("invalid", f"{brief(name)} {problem}{others}", fields=problems)


def _problems_in(error: ValidationError, model: type[BaseModel]) -> dict[str, str]:
    """Return what is wrong with a body, by field."""
    known = ", ".join(model.model_fields)
    problems: dict[str, str] = {}
    for found in error.errors(include_url=False, include_context=False):
        name = ".".join(map(str, found["loc"])) or "body"
        kind, text = found["type"], found["msg"][:1].lower() + found["msg"][1:]
        text = {"missing": "is missing", "extra_forbidden": f"is no field; known are {known}"}.get(kind, text)
        if kind not in {"missing", "extra_forbidden"}:
            text = f"cannot be used: {text}, not {brief(found['input'])}"
        problems.setdefault(name, text)
    return problems
