"""The OpenAPI description. It is generated from the operations and types that also check requests, so that both always agree."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from grace_kp.approvals import (
    Actor,
    Approval,
    ApprovalFigures,
    ApprovalState,
    Claimed,
    Decided,
    Earlier,
    Ended,
    Standing,
    Vote,
)
from grace_kp.store import Group, RunFigures, RunPage, RunRow
from grace_kp.web._errors import CODES
from grace_kp.web._site import RIGHTS, Right
from grace_kp.web.figures._figures import ModelSpending

if TYPE_CHECKING:
    from grace_kp.web.api._operation import ApiOperation


_NAMES = {"Actor": Actor, "Any": Any, "ApprovalState": ApprovalState, "Mapping": Mapping, "Sequence": Sequence}
"""Names in annotations that their modules import for type checkers only."""
PLACE = "#/components/schemas/"
"""The place of named schemas in the document."""
_DATACLASSES = (
    *(Actor, Approval, Claimed, Decided, Earlier, Ended, Standing, Vote),
    *(ApprovalFigures, Group, ModelSpending, RunFigures, RunPage, RunRow),
)
"""The dataclasses among the responses: their JSON has every field."""
LEFT_OUT = frozenset({"run", "schema"})
"""Fields of an approval that lists leave out, because they are long."""
_ELSEWHERE = frozenset({"encoded", "asked_encoded", "deadline_seconds", "use_within_seconds"})
"""Fields of an approval that its JSON holds under another name, or not at all."""
ListedApproval = Annotated[dict[str, Any], WithJsonSchema({"$ref": f"{PLACE}ListedApproval"})]


class ApiResult(BaseModel):
    """A response whose type belongs to the API alone."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Health(ApiResult):
    """Whether the service can read its store."""

    status: Literal["ok"]


class Feedback(ApiResult):
    """The labels of a run and of its actions."""

    trace: str
    """Id of the run."""
    feedback: list[dict[str, Any]]
    """The labels, oldest first; each has `correct`, `source`, `at`, and where stated `by`, `note`, `probability` and, for a program, `program`."""
    action_feedback: list[dict[str, Any]] = []
    """The labels of its actions in the same form, where there are any; `action` is the id of the decision."""


class ApprovalList(ApiResult):
    """Approvals in the order of the list."""

    approvals: list[ListedApproval]
    next: int | None
    """`offset=` of the next page; null at the end."""


class DecisionOutcome(ApiResult):
    """The outcome of a decision on an approval."""

    id: str
    ok: bool
    """Whether this person has carried out the verb, now or before."""
    approval: ListedApproval | None = None
    """The resulting approval."""
    code: str | None = None
    """The code of the problem, if not."""
    message: str | None = None


class Outcomes(ApiResult):
    """The outcome of each decision, in the order of the request."""

    outcomes: list[DecisionOutcome]


class AuditEntry(ApiResult):
    """An entry of the audit trail."""

    entry: dict[str, Any] | str
    """Its number `seq`, hash of the previous entry `prev`, time `at`, `kind`, `approval`, `revision`, `actor`, `facts`, `commitment`. A damaged
    entry is a string."""
    hash: str
    """SHA-256 of the canonical JSON of the entry."""


class Entries(ApiResult):
    """Entries of the audit trail about an approval, oldest first."""

    entries: list[AuditEntry]
    next: int | None
    """`after=` of the next page; null at the end."""


class StandingList(ApiResult):
    """Standing approvals, by the time they were granted."""

    standing: list[Standing]


class Figures(ApiResult):
    """The figures of a period."""

    since: str
    """The first day."""
    until: str
    """The last day."""
    agent: str | None
    """The agent that `runs` and `spending` are restricted to."""
    runs: RunFigures
    approvals: ApprovalFigures
    spending: list[ModelSpending]
    """The model with the most tokens first."""
    thresholds: dict[str, float | Literal["never"]]
    """The thresholds in force: the lowest confidence of each level."""


class ProblemDocument(ApiResult):
    """Why a request was refused."""

    code: str
    """For programs."""
    message: str
    """For people."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Problems by parameter or field, where some cannot be used."""
    approval: dict[str, Any] | None = None
    """The approval as it is now, in brief: `id`, `state`, `revision`, `digest`."""


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def component_schemas(kinds: Sequence[type]) -> dict[str, dict[str, Any]]:
    adapters: list[tuple[type, Literal["serialization"], TypeAdapter[Any]]] = []
    for kind in kinds:
        adapters.append((kind, "serialization", TypeAdapter(kind)))
        adapters[-1][2].rebuild(force=True, _types_namespace=_NAMES)
    _, found = TypeAdapter.json_schemas(adapters, ref_template=PLACE + "{model}", schema_generator=_Generator)
    schemas: dict[str, dict[str, Any]] = found["$defs"]
    for kind in _DATACLASSES:
        schema = schemas.get(kind.__name__, {"properties": {}})
        schema["required"] = list(schema["properties"])
        for name, text in _field_texts(kind).items():
            if name in schema["properties"]:
                schema["properties"][name]["description"] = text
    if "Approval" in schemas:
        _describe_approvals(schemas)
    return schemas


def _describe_approvals(schemas: dict[str, dict[str, Any]]) -> None:
    """Describe approvals as `Approval.to_dict` writes them, and their shorter form in lists."""
    whole = schemas["Approval"]
    whole["properties"] = {name: each for name, each in whole["properties"].items() if name not in _ELSEWHERE}
    whole["required"] = [name for name in whole["properties"] if name != "asked"]
    arguments = whole["properties"]["arguments"]
    arguments["description"] = "The arguments by parameter name, encoded; sealed ones stay sealed."
    schemas["ListedApproval"] = {
        **whole,
        "description": "An approval in a list.",
        "title": "ListedApproval",
        "properties": {name: each for name, each in whole["properties"].items() if name not in LEFT_OUT},
        "required": [name for name in whole["required"] if name not in LEFT_OUT],
    }


def _field_texts(kind: type) -> dict[str, str]:
    """Return the docstrings of the own and inherited fields of a class, if its source is available."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        try:
            parsed = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except OSError:
            continue
        body = next(node.body for node in parsed.body if isinstance(node, ast.ClassDef))
        for field, text in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                texts[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return texts


IDS = {"runs": "kp:trace:0b9f1c1e-1d1f-4f57-9c6c-2f3f6f0a7c11", "approvals": "ap-5e9c12e34cc947d6"}
"""Examples of ids, by the kind that an address names."""
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id, whole.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}
INTRODUCTION = """\
Runs of agents, their labels, approvals and figures as JSON. Strings from people and agents are unchanged: before you display them, escape
them and make control characters visible. Unknown parameters and fields are refused by name."""


def document(operations: Sequence[ApiOperation], *, root: str = "", cookie: str = "") -> dict[str, Any]:
    bodies = [operation.body for operation in operations if operation.body is not None]
    kinds = list(dict.fromkeys([*(operation.result for operation in operations), *bodies, ProblemDocument]))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe_operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "grace_kp", "version": "1", "description": INTRODUCTION},
        "servers": [{"url": root or "/"}],
        "security": [{"token": []}, {"session": [], "csrf": []}] if cookie else [{"token": []}],
        "paths": paths,
        "components": {"schemas": component_schemas(kinds), "securitySchemes": _security(cookie)},
    }


def _security(cookie: str) -> dict[str, Any]:
    source = "The token of an account." if cookie else "A token that the host application accepts."
    token = {"type": "http", "scheme": "bearer", "description": source}
    if not cookie:
        return {"token": token}
    csrf = "The CSRF token of the session, which pages hold in their forms; only writes need it, with the Origin of the pages."
    return {
        "token": token,
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "The session of a browser."},
        "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token", "description": csrf},
    }


def _describe_operation(operation: ApiOperation) -> dict[str, Any]:
    roles = [role.value for role, rights in RIGHTS.items() if operation.right in rights]
    who = "No login is needed." if operation.right is Right.ANYBODY else f"Roles: {', '.join(roles)}."
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": " ".join(filter(None, [operation.description, who])),
        "responses": _responses(operation),
    }
    parameters = _parameters(operation)
    if "{id}" in operation.path:
        parameters = [{**_ID, "example": IDS[operation.path.split("/")[3]]}, *parameters]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": _reference(operation.body), "example": dict(operation.example)}
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    if operation.right is Right.ANYBODY:
        described["security"] = []
    return described


def _parameters(operation: ApiOperation) -> list[dict[str, Any]]:
    described = []
    for name, schema in operation.parameters.model_json_schema(schema_generator=_Generator)["properties"].items():
        parameter = {"name": name, "in": "query", "required": False, "description": schema.pop("description")}
        if examples := schema.pop("examples", ()):
            parameter["example"] = examples[0]
        if schema["default"] is None:
            del schema["default"]
        described.append({**parameter, "schema": schema})
    return described


def _responses(operation: ApiOperation) -> dict[str, Any]:
    good = {"description": "Done.", "content": {"application/json": {"schema": _reference(operation.result)}}}
    responses = {str(operation.status): good}
    for status in sorted({CODES[code][0] for code in operation.codes}):
        codes = [code for code in operation.codes if CODES[code][0] == status]
        schema = {"allOf": [_reference(ProblemDocument), {"properties": {"code": {"enum": codes}}}]}
        responses[str(status)] = {
            "description": " ".join(f"`{code}`: {CODES[code][1]}" for code in codes),
            "content": {"application/json": {"schema": schema}},
        }
    return responses


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": PLACE + kind.__name__}
