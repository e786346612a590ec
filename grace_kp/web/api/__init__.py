"""The API: JSON beside the pages, with an OpenAPI description, for programs and for people who prefer a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.web._problem import Problem, http_problem
from grace_kp.web.api._table import OPERATIONS

if TYPE_CHECKING:
    from grace_kp.web._route import PageRoute

__all__ = ["Problem", "http_problem", "routes"]


def routes() -> list[PageRoute]:
    """Return the routes of this part."""
    return [operation.route() for operation in OPERATIONS]
