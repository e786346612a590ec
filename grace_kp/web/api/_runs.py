"""Operations on runs: the list, one run as it is stored, its labels, and the figures of a period."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StrictBool

from grace_kp.approvals import ApprovalState, RowQuery
from grace_kp.errors import GraceError
from grace_kp.runtime import find_action, program_problem, with_outcomes
from grace_kp.store import ACTION_FIELD, FIELD, CatalogQuery, RunPage
from grace_kp.trace import ReasoningTrace
from grace_kp.trace.html import items
from grace_kp.web._errors import ApiProblem
from grace_kp.web._parameter import UNSTATED, RunConditions, Share
from grace_kp.web._site import Right
from grace_kp.web.api._document import Feedback, Figures
from grace_kp.web.api._operation import ApiOperation, Body, invalid
from grace_kp.web.figures._figures import LONGEST, USUAL, FigureParameters, decisions_of, read_period, spending

if TYPE_CHECKING:
    from grace_kp.web.api._operation import ApiCall

FARTHEST = 2**62


class RunLabel(Body):
    """Whether a run, or one of its actions, was right."""

    correct: StrictBool | Share
    """True for right, false for wrong, or a number from 0 (wrong) to 1 (right)."""
    source: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,39}$")] = "user"
    """Where the label comes from: `user`, `test`, `audit`, `outcome`, or a name of your own. Some are reserved for people."""
    note: Annotated[str, Field(max_length=2_000)] | None = None
    """A remark. Recognised secrets are removed."""
    probability: Annotated[float, Field(gt=0, le=1)] | None = None
    """For an audit: the probability with which the run or action was chosen to be labelled."""
    action: Annotated[str, Field(pattern=r"^\S+$", max_length=500)] | None = None
    """The gated action that the label is about: the id of its decision, of its approval or of its tool call, or its number in the run, from 1 on."""


class RunListParameters(RunConditions):
    """Conditions on runs, and the place of the page."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    """Rows of the page."""
    before: Annotated[int, Field(ge=0, le=FARTHEST)] = UNSTATED
    """Only runs older than this position."""
    after: Annotated[int, Field(ge=0, le=FARTHEST)] = UNSTATED
    """Only runs newer than this position: those nearest to it."""


def _find_run(call: ApiCall) -> ReasoningTrace:
    trace = call.site.grace.store.get(call.id)
    if trace is None:
        raise ApiProblem("unknown_run", f"no run {call.id!r:.80} is stored")
    return trace


def list_runs(call: ApiCall) -> dict[str, Any]:
    query = CatalogQuery(**{name: value for name, value in call.values.items() if name in RunConditions.model_fields})
    place = {name: call.values[name] for name in ("before", "after", "limit") if name in call.values}
    return asdict(call.site.catalog.find(query, **place))


def get_run(call: ApiCall) -> str:
    return with_outcomes(_find_run(call), call.site.tables).to_json()


def list_feedback(call: ApiCall) -> dict[str, Any]:
    grace = _find_run(call).grace or {}
    labels, of_actions = (
        [each for each in items(grace.get(name)) if isinstance(each, dict)] for name in (FIELD, ACTION_FIELD)
    )
    return {"trace": call.id, "feedback": labels, **({ACTION_FIELD: of_actions} if of_actions else {})}


def add_feedback(call: ApiCall) -> dict[str, Any]:
    body: RunLabel = call.body
    trace = _find_run(call)
    stated: Any = {"by": call.person.name, "note": body.note, "probability": body.probability, "action": body.action}
    if call.person.is_program and (problem := program_problem(body.source, body.probability)):
        raise ApiProblem("forbidden", problem)
    try:
        if body.action is not None:
            find_action(trace, body.action)
    except ValueError as error:
        raise ApiProblem("unknown_action", str(error)) from None
    try:
        call.site.grace.feedback(call.id, body.correct, body.source, **stated, program=call.person.is_program)
    except ValueError as error:
        if isinstance(error, GraceError):
            raise
        raise ApiProblem("invalid", str(error)) from None
    return list_feedback(call)


def get_figures(call: ApiCall) -> dict[str, Any]:
    site = call.site
    today = datetime.fromtimestamp(site.clock(), UTC).date()
    asked = read_period(call.request.query_params, today, lambda: today)
    if asked.problems:
        raise invalid("parameter", asked.problems)
    since, until = asked.since.isoformat(), asked.until.isoformat()
    runs = site.catalog.figures(since, until, agent=asked.agent)
    found = decisions_of(site, asked.seconds)
    if found is None or found.value is None:
        reason = "" if found is None else found.problem
        reason = reason or "the figures of this period are being computed; ask again in a moment"
        raise ApiProblem("unavailable", reason)
    pending = site.tables.count(RowQuery(states=(ApprovalState.PENDING.value,)))
    return {
        "since": since,
        "until": until,
        "agent": asked.agent,
        "runs": asdict(runs),
        "approvals": {**asdict(found.value), "pending": pending},
        "spending": [asdict(each) for each in spending(runs.models, site.grace.settings.prices)],
        "thresholds": site.grace.thresholds.to_dict(),
    }


OPERATIONS = (
    ApiOperation(
        "listRuns", "/api/v1/runs", Right.SEE, "List runs, newest first", list_runs, RunPage, parameters=RunListParameters,
        description="Conditions can be combined; all of them must hold. A search that takes too long ends early: `searched_to` then states how "
        "far back it got, and `older` goes on from there.",
    ),
    ApiOperation(
        "getRun", "/api/v1/runs/{id}", Right.SEE, "Get a run as it is stored", get_run, ReasoningTrace, ("unknown_run",),
        description="A request for approval that was pending when the run ended states under `now` what has become of it since: `state`, and once "
        "it is decided `decision`, `by` and `at`.",
    ),
    ApiOperation(
        "listFeedback", "/api/v1/runs/{id}/feedback", Right.SEE, "List the labels of a run and of its actions",
        list_feedback, Feedback, ("unknown_run",),
    ),
    ApiOperation(
        "addFeedback", "/api/v1/runs/{id}/feedback", Right.LABEL, "Label a run or one of its actions as right or wrong",
        add_feedback, Feedback, ("unknown_run", "unknown_action"), method="POST", status=201, body=RunLabel,
        example={"correct": False, "note": "refunded the wrong order"},
        description="The label is stored under the name of the account. Earlier labels stay, and the newest counts. The label of an account with the "
        "role `agent` is marked as a program's: the label of a person replaces it. Such an account states no source that is reserved for people "
        "(`approval`, `audit`, `person`, `reviewer`, `seeded`), and no probability below 1.",
    ),
    ApiOperation(
        "getFigures", "/api/v1/figures", Right.SEE, "Get the figures of a period", get_figures, Figures,
        parameters=FigureParameters,
        description=f"Days are in UTC, and both are included; at most {LONGEST:,} days up to today. Without `since`, {USUAL} days. "
        "Decisions on approvals are counted once a minute at most.",
    ),
)  # fmt: skip
"""The operations on runs and figures."""
