"""Operations of the API: one description drives the route, the checks of parameters and body, the JSON of the response, and the OpenAPI document."""

from __future__ import annotations

import json
import math
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.responses import Response

from grace_kp.errors import GraceError, InvalidTrace, brief
from grace_kp.trace import refuse_what_json_cannot_hold
from grace_kp.web._errors import ApiProblem, problem_of
from grace_kp.web._parameter import Parameters, problems_in
from grace_kp.web._site import Right, body_of, person_of, route, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request

    from grace_kp.web._site import PageRoute, Person, Site


NOT_WRITABLE = "cannot be written as JSON"
"""Replaces a value that is nested too deeply, or an integer with too many digits."""
_MAX_DEPTH = 300
_MAX_BITS = 14_000


def json_text(value: object) -> str:
    """Return a value as a JSON string that UTF-8 can encode."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return json_text(_writable(value, 0))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON holds only as an escape
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value, or a JSON text, as a response that browsers treat as JSON only."""
    own = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", **(headers or {})}
    text = value if isinstance(value, str) else json_text(value)
    return Response(text, status, media_type="application/json", headers=own)


def _writable(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return NOT_WRITABLE
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return NOT_WRITABLE
    if isinstance(value, dict):
        return {name: _writable(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item, depth + 1) for item in value]
    return value


class Body(BaseModel):
    """A JSON object."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A request to an operation, checked."""

    request: Request
    values: Mapping[str, Any]
    """The parameters by name, without those that have neither a stated value nor a default."""
    body: Any = None
    """The body as the model of the operation."""

    @property
    def id(self) -> str:
        return str(self.request.path_params["id"])

    @property
    def site(self) -> Site:
        return site_of(self.request)

    @property
    def person(self) -> Person:
        """The caller. Operations without a login must not read it."""
        return person_of(self.request)


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One method of one address."""

    name: str
    """The `operationId`."""
    path: str
    """With `{id}` where the address holds an id."""
    right: Right
    summary: str
    answer: Callable[[ApiCall], Any]
    """Returns a JSON value or a JSON string. Raises `ApiProblem` or an error of this library."""
    result: type
    """Type of the result."""
    problems: tuple[str, ...] = ()
    """Codes of its specific problems."""
    _: KW_ONLY
    description: str = ""
    method: str = "GET"
    status: int = 200
    parameters: type[Parameters] = Parameters
    body: type[BaseModel] | None = None
    example: Mapping[str, Any] = field(default_factory=dict)
    """A body."""

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
        respond = self.respond_at_once if self.right is Right.ANYBODY else self.respond
        return route(self.path, respond, self.right, methods=(self.method,))

    async def respond_at_once(self, request: Request) -> Response:
        """Answer a request in a reserved thread, even if requests that wait for a locked store occupy all others."""
        return await to_thread.run_sync(self.respond, request, limiter=site_of(request).own_threads)

    def respond(self, request: Request) -> Response:
        try:
            values, problems = self.parameters.read(request.query_params.multi_items())
            if problems:
                raise invalid("parameter", problems)
            result = self.answer(ApiCall(request=request, values=values, body=self._body(request)))
        except (GraceError, ApiProblem) as error:
            request.scope["grace_kp.error"] = type(error).__name__  # for the record of refused decisions
            problem = error if isinstance(error, ApiProblem) else problem_of(error, task=f"{self.method} {self.path}")
            return json_response(problem.document, problem.status)
        return json_response(result, self.status)

    def _body(self, request: Request) -> Any:
        if self.body is None:
            return None
        document = body_of(request)
        if document is None:
            raise ApiProblem(
                "invalid", "the request needs a body, a JSON object with the content type application/json"
            )
        try:
            refuse_what_json_cannot_hold(document)
            return self.body.model_validate(document)
        except InvalidTrace as error:
            raise ApiProblem("invalid", f"the body cannot be used: {error}") from None
        except ValidationError as error:
            raise invalid("field", problems_in(error, self.body)) from None


def invalid(what: str, problems: Mapping[str, str]) -> ApiProblem:
    name, problem = next(iter(problems.items()))
    more = len(problems) - 1
    others = f"; {more} more {what}{'' if more == 1 else 's'} cannot be used" if more else ""
    return ApiProblem("invalid", f"{brief(name)} {problem}{others}", fields=problems)


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def refuse_other_methods(address: str, operations: Sequence[ApiOperation]) -> PageRoute:
    own = {operation.method for operation in operations}
    allowed = [method for method in METHODS if method in own or (method == "HEAD" and "GET" in own)]

    def refuse(request: Request) -> Response:
        message = f"this address has no method {request.method}, only {', '.join(allowed)}"
        problem = ApiProblem("method_not_allowed", message)
        return json_response(problem.document, problem.status, {"Allow": ", ".join(allowed)})

    return route(address, refuse, operations[0].right, methods=[method for method in METHODS if method not in allowed])
