"""Conditions on runs as parameters of an address: the list of runs and the API read them in the same way.

`query_from(params)` takes `request.query_params` and returns the `CatalogQuery` and the problems by field. A field with a problem is left out of
the query. Empty fields, which a form without entries sends, mean any. Other names, such as `before` or `limit`, are left to the caller:
`CONDITIONS` lists those that are read here, with the values that each allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.levels import InterventionLevel
from grace_kp.store import CatalogQuery
from grace_kp.web._parameter import Kind, Parameter, read_all

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

LEVELS = (*(level.value for level in InterventionLevel), "none")
"""Levels of a run; `none` for runs without a gate."""
CONDITIONS = (
    Parameter(name="agent", meaning="Name of the agent or run.", example="refunds"),
    Parameter(name="domain", meaning="Domain of the task.", example="support"),
    Parameter(name="status", meaning="How the run ended.", example="completed"),
    Parameter(name="level", meaning="Strictest level of the gates of the run; `none` without a gate.", choices=LEVELS),
    Parameter(name="min_score", meaning="Smallest value score.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="max_score", meaning="Largest value score.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="min_confidence", meaning="Smallest confidence.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="max_confidence", meaning="Largest confidence.", kind=Kind.NUMBER, maximum=1),
    Parameter(name="scorer", meaning="Name of a scorer or suite that has scored the run."),
    Parameter(name="scorer_passed", meaning="Whether the run passed that scorer, or any.", kind=Kind.FLAG),
    Parameter(name="tags", meaning="A tag of the run; repeat it for several, which must all be there.", many=True),
    Parameter(name="user", meaning="User of the run."),
    Parameter(name="session", meaning="Session of the run."),
    Parameter(
        name="since",
        meaning="Runs that began at or after this time: a date, a date and time (UTC without a zone), or how long ago.",
        kind=Kind.TIME,
        example="7d",
    ),
    Parameter(
        name="until", meaning="Runs that began at or before this time.", kind=Kind.TIME, example="2026-11-25T12:00:00Z"
    ),
    Parameter(name="text", meaning="A text that the run contains, in any case.", maximum=500),
    Parameter(name="feedback", meaning="Only runs with feedback, or only runs without.", kind=Kind.FLAG),
    Parameter(name="roots", meaning="Only runs that are nested in no other.", kind=Kind.FLAG),
)
"""The parameters, by the fields of `CatalogQuery`."""


def query_from(params: QueryParams) -> tuple[CatalogQuery, dict[str, str]]:
    """Return the conditions that an address states, and the problems by field.

    Args:
        params: `request.query_params`.

    Returns:
        The query without the fields that have a problem, and for each such field a sentence without a subject, such as
        `must be from 0 to 1, not '2'`.
    """
    values, problems = read_all(CONDITIONS, [(name, value) for name, value in params.multi_items() if value])
    return CatalogQuery(**values), problems
