"""Scorers on finished runs: what they say is stored with the trace and found again, and nothing they do reaches the agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading

import pytest

import grace_kp as gk
from grace_kp import scorers as sc
from tests.exhaustive import exhaustive

pytest.importorskip("regex", reason="needs the extra eval")

WANTED = sc.EditExpectation([sc.Operation("write", "a.md")], patterns={"result": ["written"]})
KEY = "sk-" + "a1B2" * 10


@pytest.fixture(params=["memory", "sqlite"])
def agent(request, tmp_path):
    """Gives an agent that writes files, on a runtime with these scorers."""
    made = []

    def with_scorers(*scorers, **settings):
        url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 't.db'}"
        grace = gk.Grace(store=url, evaluator=None, embedder=None, scorers=scorers, **settings)
        made.append(grace)

        @grace.tool
        def write(path, content=""):
            if path == "locked":
                raise PermissionError("it is locked")
            return "ok"

        @grace.agent
        def edit(*paths):
            for path in paths:
                with contextlib.suppress(PermissionError):
                    write(path, "text")
            return "all written"

        return grace, edit

    yield with_scorers
    for grace in made:
        grace.close()


def told(grace):
    return (grace.store.query()[0].grace or {}).get("scores")


class TestGrace:
    def test_a_suite_is_stored_with_the_trace_and_found(self, agent):
        grace, edit = agent(sc.OnTraces(sc.Suite.preset("standard"), WANTED))
        assert "all written" == edit("a.md")
        edit("b.md")
        assert [0.0, 1.0] == [one["score"] for one in told(grace)[1::2]]
        store = grace.store
        found = store.query(scorer="standard", scorer_passed=False)
        assert ["b.md"] == [trace.steps[0].input["path"] for trace in found]
        assert (2, 1, 1) == tuple(
            store.count(scorer="standard", **more) for more in ({}, {"scorer_passed": True}, {"min_scorer": 0.9})
        )
        assert 1 == store.count(scorer="operation-accuracy", max_scorer=0.5)
        assert 0 == store.count(scorer="nobody")
        assert 2 == store.count(min_scorer=1.0)  # any scorer
        (whole, accuracy, precision, content) = told(grace)
        assert {"name": "standard", "score": pytest.approx(1 / 3), "passed": False} == {
            name: whole[name] for name in ("name", "score", "passed")
        }
        assert "target mismatch" in " ".join(whole["diagnosis"])
        assert ("standard", 1.0, 0.8, False) == tuple(
            accuracy[name] for name in ("suite", "weight", "threshold", "passed")
        )
        assert 0 == precision["details"]["correct_targets"]
        assert content["passed"]

    def test_which_runs_and_what_is_expected_of_them(self, agent):
        by_objective = {"edit": WANTED}
        grace, edit = agent(sc.OnTraces(sc.OperationAccuracy(), by_objective, name="mapped"))
        other = grace.agent(objective="something else")(edit.__wrapped__)
        other("a.md")
        assert told(grace) is None
        edit("a.md")
        objective = grace.store.query()[0].task.objective
        grace.store.clear()
        by_objective[objective] = WANTED
        edit("a.md")
        assert [("mapped", 1.0)] == [(one["name"], one["score"]) for one in told(grace)]

        grace, edit = agent(sc.OnTraces(sc.OperationAccuracy(), lambda trace: WANTED if len(trace.steps) > 2 else None))
        edit("a.md")
        assert told(grace) is None
        edit("a.md", "b.md")
        assert 1.0 == told(grace)[0]["score"]

    def test_scorers_that_need_no_expectation(self, agent):
        grace, edit = agent(sc.ResponseTime(60_000), sc.ContentQuality({"result": ["written", "nowhere"]}))
        edit("a.md")
        assert [("response-time", 1.0), ("content-quality", 0.5)] == [
            (one["name"], one["score"]) for one in told(grace)
        ]

    def test_what_was_not_measured_is_no_score(self, agent):
        grace, edit = agent(sc.OperationAccuracy(), sc.OnTraces(sc.AntiHallucination(), WANTED))
        edit("a.md")
        alone, blocks = told(grace)
        assert {
            "name": "operation-accuracy",
            "score": None,
            "skipped": "it compares with what is expected, and nothing is said to be",
        } == alone
        assert blocks["score"] is None
        assert "the blocks of the document are unknown" in blocks["error"]
        assert 0 == grace.store.count(scorer="anti-hallucination", min_scorer=0)

    def test_what_a_scorer_raises_costs_nothing_else(self, agent):
        def broken(trace):
            raise RuntimeError(f"api_key={KEY}")

        def wrong(trace):
            return 7

        grace, edit = agent(broken, wrong, sc.ResponseTime(60_000))
        assert "all written" == edit("a.md")
        first, second, third = told(grace)
        assert (None, None, 1.0) == (first["score"], second["score"], third["score"])
        assert first["error"].startswith("RuntimeError: api_key=[REDACTED")
        assert "7 is not a score from 0 to 1" == second["error"]
        assert KEY not in json.dumps(grace.store.query()[0].to_dict())

    def test_a_secret_in_an_expectation_is_not_stored(self, agent):
        expected = sc.EditExpectation([sc.Operation("write", "z", content=f"password: {KEY}")])
        grace, edit = agent(sc.OnTraces(sc.OperationAccuracy(), expected))
        edit("a.md")
        assert KEY not in json.dumps(told(grace))
        assert "unmatched_operations" in told(grace)[0]["details"]

    def test_hooks_and_collectors_see_the_scores(self, agent):
        grace, edit = agent(sc.ResponseTime(60_000))
        seen = []
        grace.on_complete(lambda trace: seen.append(trace.grace["scores"][0]["name"]))
        with grace.collect() as traces:
            edit("a.md")
        assert ["response-time"] == seen
        assert "response-time" == traces[0].grace["scores"][0]["name"]

    def test_what_is_no_scorer(self):
        with pytest.raises(gk.SettingsError, match="neither a scorer nor a suite"):
            sc.OnTraces("standard")
        with pytest.raises(gk.SettingsError, match="expected must be an EditExpectation"):
            sc.OnTraces(sc.OperationAccuracy(), 3)
        with pytest.raises(gk.SettingsError, match="is not a scorer or a suite, and cannot be called"):
            gk.Grace(store="memory:", scorers="standard")


class TestTrouble:
    """What scorers of the user's may do, and what it costs: that scorer's word on that run, and nothing else."""

    def test_flushing_does_not_wait_for_it_longer_than_it_was_told(self, agent):
        held, inside = threading.Event(), threading.Event()

        def hangs(trace):
            inside.set()
            held.wait(60)

        grace, edit = agent(hangs, scorer_timeout=900)
        edit("a.md")
        assert inside.wait(60)
        assert not grace.flush(0.1)
        held.set()
        assert grace.flush(60)

    @exhaustive  # it takes as long as an exit may
    def test_a_program_ends_all_the_same_and_loses_nothing(self, tmp_path):
        code = f"""
import time
import grace_kp as gk
grace = gk.Grace(store="sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, scorers=lambda trace: time.sleep(1000), scorer_timeout=900)
for number in range(3):
    with grace.run(f"run {{number}}"):
        pass
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
        assert (0, "") == (ran.returncode, ran.stderr)
        store = gk.Grace(store=f"sqlite:///{tmp_path}/t.db").store
        said = [trace.grace["scores"][0] for trace in store.iterate()]
        assert ["the process ended first, or the runtime was closed"] * 3 == [one.get("skipped") for one in said]

    def test_runs_that_end_after_closing_are_stored_without(self, tmp_path):
        grace = gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, scorers=lambda trace: 1.0)
        for number in range(3):
            with grace.run(f"run {number}"):
                pass
            if number == 0:
                grace.close()
        assert grace.flush()
        store = gk.Grace(store=f"sqlite:///{tmp_path}/t.db").store
        assert [1.0, None, None] == [trace.grace["scores"][0]["score"] for trace in store.iterate()]

    def test_more_runs_than_scorers_can_take_are_stored_without(self, agent, monkeypatch):
        monkeypatch.setattr("grace_kp.runtime._completion.MAX_WAITING", 50)
        held = threading.Event()

        def slow(trace):
            held.wait(60)
            return 1.0

        grace, edit = agent(slow)
        stored, are_stored = [], threading.Event()

        def count_stored(trace):
            stored.append(trace.id)
            if len(stored) >= 100:
                are_stored.set()

        grace.on_complete(count_stored)
        for _ in range(200):
            edit("a.md")
        assert are_stored.wait(60)  # they do not fill the memory
        held.set()
        assert grace.flush(60)
        assert 200 == grace.store.count()
        said = {one.get("skipped") for trace in grace.store.iterate() for one in trace.grace["scores"]}
        assert any("runs wait" in str(reason) for reason in said)

    def test_a_scorer_that_is_an_agent_itself_is_not_scored_for_ever(self, agent):
        box = []

        def judge(trace):
            return {"asked": box[0]()}

        grace, edit = agent(judge)

        @grace.agent(objective="judge")
        def asked():
            return 0.5

        box.append(asked)
        edit("a.md")
        assert grace.flush(60)
        assert grace.flush(60)  # the run of the scorer itself
        assert (2, 1) == (grace.store.count(), grace.store.count(scorer="asked"))

    def test_a_scorer_that_looks_into_the_store_does_not_wait_for_itself(self, agent):
        box = []

        def counts(trace):
            return {"counted": float(box[0].store.count() < 5), "flushed": box[0].flush(30) is None}

        grace, edit = agent(counts, scorer_timeout=20.0)
        box.append(grace)
        edit("a.md")
        assert grace.flush(60)
        assert [1.0, 0.0] == [one["score"] for one in told(grace)]

    @pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt])
    def test_errors_that_are_no_exceptions(self, agent, error):
        def odd(trace):
            raise error("odd")

        grace, edit = agent(odd)
        edit("a.md")
        edit("b.md")
        assert [f"{error.__name__}: odd"] * 2 == [trace.grace["scores"][0]["error"] for trace in grace.store.query()]

    async def test_asynchronous_ones_inside_of_a_running_loop(self, agent):
        async def later(trace):
            await asyncio.sleep(0)
            return 0.5

        grace, edit = agent(later)
        with grace.collect() as traces:
            edit("a.md")
        assert 0.5 == traces[0].grace["scores"][0]["score"]

    def test_a_suite_of_which_a_part_could_not_be_scored_has_no_score(self, agent):
        grace, edit = agent(sc.OnTraces(sc.Suite.preset("strict"), WANTED))
        edit("a.md")
        whole, *parts = told(grace)
        assert (None, None) == (whole["score"], whole["passed"])
        assert whole["error"].startswith("anti-hallucination could not be scored: ValueError")
        assert "0.00" not in json.dumps(told(grace))
        assert (None, None) == (parts[3]["score"], parts[3]["passed"])
        assert 0 == grace.store.count(scorer="strict", max_scorer=1) + grace.store.count(
            scorer="strict", scorer_passed=False
        )
        assert 1 == grace.store.count(scorer="strict")

    def test_an_objective_is_found_as_it_was_given(self, agent):
        grace, _edit = agent(
            sc.OnTraces(sc.OperationAccuracy(), {"Mail bob@example.com": WANTED}), privacy_level="aggregated"
        )
        with grace.run("Mail bob@example.com"):
            pass
        assert "bob" not in grace.store.query()[0].task.objective
        assert 0.0 == told(grace)[0]["score"]


class TestTraces:
    def test_scorers_take_traces(self, agent):
        grace, edit = agent()
        with grace.collect() as traces:
            edit("a.md", "locked")
        for trace in (traces[0], traces[0].to_dict()):
            assert 1.0 == sc.OperationAccuracy().score(trace, WANTED)
            assert 1 == sc.TargetBlockPrecision().details(trace, WANTED).correct_targets
            assert 1.0 == sc.ContentQuality().score(trace, WANTED)
            assert ["locked"] == [
                one.target_block_id for one in sc.OperationResult().details(trace, WANTED).failed_operations
            ]
            assert 1.0 == sc.ResponseTime(60_000).score(trace, WANTED)
            assert sc.Suite.preset("standard").evaluate(trace, WANTED).passed
            with pytest.raises(ValueError, match="the blocks of the document are unknown"):
                sc.AntiHallucination().score(trace, WANTED)
        result = sc.result_from_trace(traces[0])
        assert ((True, False), {"result": "all written"}, None) == (result.applied, result.pages, result.blocks_before)
