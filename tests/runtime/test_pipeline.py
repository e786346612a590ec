"""From an ended run to a stored record: the order of the stages, hooks, sampling, journals of open and of lost runs, columns."""

from __future__ import annotations

import json
import logging

import pytest

import grace_kp as gk
from grace_kp.runtime import record_of
from grace_kp.testing import make_grace
from tests.store.samples import document


def test_completion_goes_confidence_score_store_hooks():
    """A hook sees confidence and score, and the store has the trace."""
    grace = gk.Grace(store="memory:", reviewer=None)
    seen = []

    @grace.on_complete
    def look(trace):
        stored = grace._writer.store().get(trace.id)
        seen.append((trace.outcome.confidence, trace.metadata.quality_score, stored == trace))

    with grace.run("x"):
        grace.thought("hm")
    grace.flush()
    ((confidence, score, stored),) = seen
    assert confidence == 0.7
    assert score == pytest.approx(0.1)
    assert stored
    assert grace.store.query()[0].metadata.quality_score == score


def test_hooks_hear_in_the_order_of_completion_and_may_fail(caplog, monkeypatch):
    """A failing hook costs a line in the log; async hooks are awaited; the trace is stored all the same."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)
    grace = gk.Grace(store="memory:", reviewer=None)
    heard = []

    @grace.on_complete
    def broken(trace):
        raise RuntimeError("no")

    @grace.on_complete
    async def note(trace):
        heard.append(trace.task.objective)

    for n in range(5):
        with grace.run(f"run {n}"):
            pass
    assert grace.flush()
    assert heard == [f"run {n}" for n in range(5)]
    assert len(grace.store.query()) == 5
    assert [r.levelno for r in caplog.records if "broken" in r.getMessage()] == [logging.WARNING]


def test_sampling_keeps_whole_runs_and_all_failed_and_gated_ones():
    """Rate 0 keeps what failed and what was gated, nothing else, and counts the rest."""
    grace = gk.Grace(store="memory:", reviewer=lambda request: gk.InterventionResponse("proceed"), sample_rate=0)

    @grace.gate(floor="confirm")
    def act(): ...

    @grace.agent
    def child(text): ...

    @grace.agent
    def plain(text):
        child("inner")

    @grace.agent
    def gated(text):
        act()

    @grace.agent
    def failing(text):
        raise ValueError

    plain("plain")
    gated("gated")
    with pytest.raises(ValueError, match="^$"):  # noqa: RUF043
        failing("failing")
    assert {t.task.objective for t in grace.store.query()} == {"gated", "failing"}
    assert grace.status()["sampled_out"] == 2


def test_a_journal_holds_only_what_is_new():
    """A second call returns no rows while nothing happens; together the rows rebuild the run."""
    grace = make_grace()
    with grace._writer._settling, grace.run("an objective") as run:
        grace.thought("first")
        (rows,) = grace._pipeline.journal()
        assert [[]] == list(grace._pipeline.journal())
        grace.thought("second")
        rows += next(grace._pipeline.journal())
        assert [*range(len(rows))] == [row.seq for row in rows]
        assert {run.id} == {row.run_id for row in rows}
    record, _ = grace._pipeline.settle(grace._pipeline.lost_run(rows))
    lost = gk.ReasoningTrace.model_validate_json(record.data)
    assert ("an objective", "interrupted") == (lost.task.objective, lost.status)
    assert ["first", "second"] == [step.content for step in lost.steps]


def test_what_could_not_be_recorded_is_reported_once_per_change(monkeypatch):
    """No report without losses; the same counts are no news; a secret in a message is removed."""
    monkeypatch.setattr("grace_kp.runtime._pipeline.TROUBLES", type(gk.runtime._pipeline.TROUBLES)())
    pipeline = make_grace()._pipeline
    assert pipeline.report(0, 0) is None
    name, data = pipeline.report(2, 0)
    assert {"troubles": {}, "last_trouble": None, "dropped": 2, "lost": 0} == json.loads(data)
    assert pipeline.report(2, 0) is None
    assert name == pipeline.report(2, 1)[0]


def test_the_document_is_kept_whole():
    """The columns repeat parts of it."""
    source = document("a", text="an answer")
    record = record_of(source)
    assert source == json.loads(record.data)
    assert ("kp:trace:a", "2026-01-01T00:00:00.000Z", "default", 0.5, True, "completed") == (
        record.id, record.created_at, record.domain, record.score, record.success, record.status
    )  # fmt: skip
    assert "an answer" in record.text


@pytest.mark.parametrize(
    ("created_at", "column"),
    [("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"), ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z")],
)
def test_times_are_compared_in_one_form(created_at, column):
    """UTC with milliseconds, where the calendar knows the time."""
    assert column == record_of(document("a", created_at=created_at)).created_at


@pytest.mark.parametrize(
    ("scores", "rows"),
    [
        ([{"name": "a", "score": 0.5, "passed": True}], (("a", 0.5, True),)),
        ([{"name": "a", "score": 1}], (("a", 1.0, None),)),
        ([{"name": "a", "score": 2, "passed": "yes"}], (("a", None, None),)),
        ([{"name": 3}, "x", {"score": 1}], ()),
        ("x", ()),
        (None, ()),
    ],
)
def test_scores_from_elsewhere_may_hold_anything(scores, rows):
    """Only a name that is a text and a score from 0 to 1 become columns."""
    assert rows == record_of(document("a", scores=scores)).scores


def test_a_status_that_is_no_text_is_unknown():
    """A column holds a text in any case."""
    assert "unknown" == record_of({**document("a"), "grace": {"status": 3}}).status
