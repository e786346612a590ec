"""Operations on runs: the list, one run as it is stored, and its labels."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GraceError
from grace_kp.runtime import program_problem, with_outcomes
from grace_kp.store import CatalogQuery, RunPage
from grace_kp.trace import ReasoningTrace
from grace_kp.web._parameter import Kind, Parameter
from grace_kp.web._person import Right
from grace_kp.web._problem import Problem
from grace_kp.web._run_query import CONDITIONS
from grace_kp.web.api._bodies import Label
from grace_kp.web.api._operation import Operation, Text
from grace_kp.web.api._schemas import Feedback

if TYPE_CHECKING:
    from grace_kp.web.api._operation import Call

ID = "kp:trace:0b9f1c1e-1d1f-4f57-9c6c-2f3f6f0a7c11"
FARTHEST = 2**62


def _found(call: Call) -> ReasoningTrace:
    trace = call.site.grace.store.get(call.id)
    if trace is None:
        raise Problem("unknown_run", f"no run {call.id!r:.80} is stored")
    return trace


def list_runs(call: Call) -> dict[str, Any]:
    """Return a page of runs."""
    names = [parameter.name for parameter in CONDITIONS]
    query = CatalogQuery(**{name: value for name, value in call.values.items() if name in names})
    place = {name: call.values[name] for name in ("before", "after", "limit") if name in call.values}
    return asdict(call.site.catalog.find(query, **place))


def get_run(call: Call) -> Text:
    """Return a run as it is stored, with what has become of its requests for approval."""
    return Text(text=with_outcomes(_found(call), call.site.tables).to_json())


def list_feedback(call: Call) -> dict[str, Any]:
    """Return the labels of a run."""
    labels = (_found(call).grace or {}).get("feedback")
    kept = [label for label in labels if isinstance(label, dict)] if isinstance(labels, list) else []
    return {"trace": call.id, "feedback": kept}


def add_feedback(call: Call) -> dict[str, Any]:
    """Label a run, and return its labels."""
    body: Label = call.body
    _found(call)
    stated: Any = {"by": call.person.name, "note": body.note, "probability": body.probability}
    if call.person.is_program and (problem := program_problem(body.source, body.probability)):
        raise Problem("forbidden", problem)
    try:
        call.site.grace.feedback(call.id, body.correct, body.source, **stated, program=call.person.is_program)
    except ValueError as error:
        if isinstance(error, GraceError):
            raise
        raise Problem("invalid", str(error)) from None
    return list_feedback(call)


OPERATIONS = (
    Operation(
        name="listRuns",
        path="/api/v1/runs",
        right=Right.SEE,
        summary="List runs, newest first",
        description="Conditions can be combined; all of them must hold. A search that takes too long ends early: `searched_to` then states how "
        "far back it got, and `older` goes on from there.",
        answer=list_runs,
        result=RunPage,
        parameters=(
            *CONDITIONS,
            Parameter(name="limit", meaning="Rows of the page.", kind=Kind.WHOLE, minimum=1, maximum=200, default=50),
            Parameter(name="before", meaning="Only runs older than this position.", kind=Kind.WHOLE, maximum=FARTHEST),
            Parameter(
                name="after",
                meaning="Only runs newer than this position: those nearest to it.",
                kind=Kind.WHOLE,
                maximum=FARTHEST,
            ),
        ),
    ),
    Operation(
        name="getRun",
        path="/api/v1/runs/{id}",
        right=Right.SEE,
        summary="Get a run as it is stored",
        description="A request for approval that was pending when the run ended states under `now` what has become of it since: `state`, and once "
        "it is decided `decision`, `by` and `at`.",
        answer=get_run,
        result=ReasoningTrace,
        problems=("unknown_run",),
        id_example=ID,
    ),
    Operation(
        name="listFeedback",
        path="/api/v1/runs/{id}/feedback",
        right=Right.SEE,
        summary="List the labels of a run",
        answer=list_feedback,
        result=Feedback,
        problems=("unknown_run",),
        id_example=ID,
    ),
    Operation(
        name="addFeedback",
        method="POST",
        path="/api/v1/runs/{id}/feedback",
        right=Right.LABEL,
        summary="Label a run as right or wrong",
        description="The label is stored under the name of the account. Earlier labels stay, and the newest counts. The label of an account with the "
        "role `agent` is marked as a program's: the label of a person replaces it. Such an account states no source that is reserved for people "
        "(`approval`, `audit`, `person`, `reviewer`, `seeded`), and no probability below 1.",
        answer=add_feedback,
        result=Feedback,
        status=201,
        body=Label,
        example={"correct": False, "note": "refunded the wrong order"},
        problems=("unknown_run",),
        id_example=ID,
    ),
)
"""The operations on runs."""
