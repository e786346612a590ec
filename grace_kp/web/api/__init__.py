"""The API: JSON beside the pages, with an OpenAPI description, for programs and for people who prefer a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.web.api._table import OPERATIONS
from grace_kp.web.api._unallowed import unallowed

if TYPE_CHECKING:
    from grace_kp.web._route import PageRoute

__all__ = ["routes"]


def routes() -> list[PageRoute]:
    """Return the routes of this part: those of each address together, and whole addresses before those with an id."""
    addresses = sorted(dict.fromkeys(operation.path for operation in OPERATIONS), key=lambda path: "{id}" in path)
    found: list[PageRoute] = []
    for address in addresses:
        operations = [operation for operation in OPERATIONS if operation.path == address]
        found += [operation.route() for operation in operations]
        found.append(unallowed(address, operations))
    return found
