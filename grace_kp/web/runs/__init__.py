"""Pages of runs: the list with its filters, one run, two runs side by side, and feedback by a button."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.web._site import Right, route
from grace_kp.web.runs._compare import compare_page
from grace_kp.web.runs._list import run_list
from grace_kp.web.runs._run import label_run, run_json, run_page

if TYPE_CHECKING:
    from grace_kp.web._site import PageRoute

__all__ = ["routes"]


def routes() -> list[PageRoute]:
    """Return the routes of this part. Ids may hold a slash, which arrives as one."""
    return [
        route("/runs", run_list, Right.SEE),
        route("/runs/compare", compare_page, Right.SEE),
        route("/runs/{id:path}/feedback", label_run, Right.LABEL, methods=("POST",)),
        route("/runs/{id:path}/json", run_json, Right.SEE),
        route("/runs/{id:path}", run_page, Right.SEE),
    ]
