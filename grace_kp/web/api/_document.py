"""The OpenAPI description, made from the operations: what is not checked is not described, and what is described is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.web._parameter import Parameter
from grace_kp.web._person import RIGHTS, Right
from grace_kp.web._problem import CODES
from grace_kp.web.api._schemas import PLACE, ProblemDocument, component_schemas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.web.api._operation import Operation

ID = Parameter(name="id", meaning="The id, whole.", required=True)
"""The parameter in addresses."""
INTRODUCTION = """\
Runs of agents, their labels, approvals and figures as JSON. Texts of people and agents stand in it as they are: whoever displays them escapes
them and makes control characters visible. Unknown parameters and fields are refused by name."""


def document(operations: Sequence[Operation], *, root: str = "", cookie: str = "") -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of operations.

    Args:
        operations: the operations.
        root: the path that the application is mounted under.
        cookie: name of the cookie of a session; empty where the application that this one is mounted into establishes who calls.
    """
    bodies = [operation.body for operation in operations if operation.body is not None]
    kinds = list(dict.fromkeys([*(operation.result for operation in operations), *bodies, ProblemDocument]))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "grace_kp", "version": "1", "description": INTRODUCTION},
        "servers": [{"url": root or "/"}],
        "security": [{"token": []}, {"session": [], "csrf": []}] if cookie else [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": component_schemas(kinds),
            "securitySchemes": _security(cookie),
        },
    }


def _security(cookie: str) -> dict[str, Any]:
    token = {"type": "http", "scheme": "bearer", "description": "The token of an account."}
    if not cookie:
        return {"token": {**token, "description": "What the application that this one is mounted into accepts."}}
    csrf = "The CSRF token of the session, which pages hold in their forms; only writes need it, with the Origin of the pages."
    return {
        "token": token,
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "The session of a browser."},
        "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token", "description": csrf},
    }


def _described(operation: Operation) -> dict[str, Any]:
    roles = [role.value for role, rights in RIGHTS.items() if operation.right in rights]
    who = "Open to anybody." if operation.right is Right.ANYBODY else f"Roles: {', '.join(roles)}."
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": " ".join(filter(None, [operation.description, who])),
        "responses": _responses(operation),
    }
    parameters = [_parameter(each, "query") for each in operation.parameters]
    if "{id}" in operation.path:
        parameters = [{**_parameter(ID, "path"), "example": operation.id_example}, *parameters]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": _reference(operation.body), "example": dict(operation.example)}
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    if operation.right is Right.ANYBODY:
        described["security"] = []
    return described


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    described = {
        "name": parameter.name,
        "in": place,
        "required": parameter.required,
        "description": parameter.meaning,
        "schema": parameter.schema,
    }
    return described if parameter.example is None else {**described, "example": parameter.example}


def _responses(operation: Operation) -> dict[str, Any]:
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
