"""Labelled runs from stores, files and lists; what weights and thinning are for."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.errors import InvalidRecord, StoreError
from grace_kp.runtime import record_of
from grace_kp.store import open_store
from tests.calibrate.examples import run

STEPS = [("thought", "hm")]


def labelled(number, correct, source="user", *, domain="default", decisions=(), **fields):
    """A trace in its dict form with one label; none if `correct` is None."""
    feedback = [] if correct is None else [{"correct": correct, "source": source, **fields}]
    trace = run(STEPS, feedback=feedback, objective=f"task {number}", decisions=list(decisions))
    trace["metadata"].update(task_domain=domain, quality_score=0.5)
    return {**trace, "id": f"kp:trace:{number}"}


@pytest.fixture
def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path / 't.db'}")
    traces = [labelled(0, True), labelled(1, None), labelled(2, 0.5), labelled(3, False, "approval"), labelled(4, False, domain="code")]  # fmt: skip
    opened.put([record_of(trace) for trace in traces])
    yield opened
    opened.close()


def names(found):
    return [int(trace.id.rpartition(":")[2]) for trace in found.traces]


def test_it_unpacks_to_traces_and_labels(store):
    """Oldest first; what was left out is counted."""
    found = cal.labels(store)
    traces, labels = found
    assert ([0, 2, 4], [True, 0.5, False]) == (names(found), labels)
    assert found.traces is traces
    assert (["user"] * 3, [1.0] * 3) == (found.sources, found.weights)
    assert {"no label": 1, "label of another source": 1} == found.left_out
    assert [0, 2, 3, 4] == names(cal.labels(store, ["user", "approval"]))
    assert ([4], {}) == ((code := cal.labels(store, domain="code")).traces and names(code), code.left_out)


def test_guarantees_use_plain_labels_only(store):
    """The fractional ones are counted as left out."""
    found = cal.labels(store).binary()
    assert ([0, 4], [True, False]) == (names(found), found.labels)
    assert {"no label": 1, "label of another source": 1, "fractional label": 1} == found.left_out
    assert found == found.binary()


def test_every_place_gives_the_same_labels(store, tmp_path):
    """A store, its path, its URL, an export, a list and a runtime."""
    exported = tmp_path / "runs.jsonl.gz"
    gk.write_traces(exported, store.iterate())
    with gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None) as grace:
        places = [store, tmp_path / "t.db", str(tmp_path / "t.db"), f"sqlite:///{tmp_path / 't.db'}", exported, list(store.iterate()), grace]  # fmt: skip
        places += [cal.read_labelled(exported), (trace.to_dict() for trace in store.iterate())]
        for place in places:
            found = cal.labels(place)
            assert ([0, 2, 4], [True, 0.5, False]) == (names(found), found.labels)
            assert {"no label": 1, "label of another source": 1} == found.left_out


def test_a_runtime_writes_what_waits_first():
    """The run that has just ended is among the labelled ones."""
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as grace:
        with grace.run("x") as block:
            pass
        grace.feedback(block.id, False, "test")
        assert ([False], ["test"]) == ((found := cal.labels(grace)).labels, found.sources)


def test_a_store_without_feedback_is_read_trace_by_trace(store):
    """Its traces may hold labels all the same."""

    class Own:
        def iterate(self, **conditions):
            return store.iterate(**conditions)

    assert {"no label": 1, "label of another source": 1} == cal.labels(Own()).left_out


def test_sources_in_the_trace_are_found_without_feedback(store):
    """Naming one looks at every run."""
    store.put([record_of({**labelled(5, None), "grace": {"own_success": True}})])
    assert ([0, 2, 4, 5], ["user", "user", "user", "own"]) == (
        names(found := cal.labels(store, ["user", "own"])),
        found.sources,
    )


def test_places_that_cannot_be_read(tmp_path):
    """The error names them; nothing is created."""
    with pytest.raises(InvalidRecord, match="there is no such file"):
        cal.labels(tmp_path / "nothing.jsonl")
    with pytest.raises(StoreError, match="cannot be opened"):
        cal.labels(f"sqlite:///{tmp_path / 'nothing.db'}")
    with pytest.raises(StoreError, match="unknown store"):
        cal.labels("ftp://nowhere")
    for wrong in (3, None, {"a": 1}):
        with pytest.raises(TypeError, match="labels takes a store, a Grace, a URL, a path or traces"):
            cal.labels(wrong)
    (tmp_path / "runs.jsonl").write_text("")
    for place in ([], tmp_path / "runs.jsonl"):
        with pytest.raises(ValueError, match="conditions such as domain select runs of a store"):
            cal.labels(place, domain="code")
    assert ["runs.jsonl"] == [path.name for path in tmp_path.iterdir()]


def test_what_cannot_be_read_is_counted(tmp_path):
    """`read_labelled` says where; `labels` counts."""
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{json.dumps(labelled(1, True))}\n{{\n{json.dumps(labelled(2, False))}\n")
    found = cal.labels(path)
    assert ([True, False], {"unreadable": 1}) == (found.labels, found.left_out)


RATE = 0.1


def deployed(count, seed):
    """Runs of an agent behind a gate: confidence, whether each was right, and its trace with the labels that come about.

    Below 0.6 a person is asked, and the run is labelled. Above it runs silently: one in ten is audited, and users complain about some errors.
    """
    draw = random.Random(seed)
    for number in range(count):
        confidence = draw.random()
        correct = draw.random() < 0.3 + 0.65 * confidence
        if confidence < 0.6:
            yield (
                confidence,
                correct,
                labelled(
                    number, correct, "user", decisions=[{"action": "a", "outcome": "executed", "level": "confirm"}]
                ),
            )
            continue
        selected = draw.random() < RATE
        complains = not correct and draw.random() < 0.5
        stated = correct if selected or complains else None
        decision = {"action": "a", "outcome": "executed", "level": "silent", "audit": {"rate": RATE, "selected": selected}}  # fmt: skip
        yield confidence, correct, labelled(number, stated, "audit" if selected else "user", decisions=[decision])


def shares(found, confidences):
    """The weighted share of right runs, the gap between it and the mean confidence, and the number that is an unweighted sample as good."""
    weights, values = found.weights, [float(label) for label in found.labels]
    total = sum(weights)
    accuracy = sum(w * y for w, y in zip(weights, values, strict=True)) / total
    mean = sum(w * confidences[name] for w, name in zip(weights, names(found), strict=True)) / total
    return accuracy, mean - accuracy, total**2 / sum(w * w for w in weights)


@pytest.mark.parametrize("seed", range(2))
def test_weights_undo_that_mostly_escalated_runs_are_labelled(seed):
    """Without audits and weights, accuracy and calibration error are those of the runs that people look at, and are far off."""
    runs = list(deployed(8_000, seed))
    confidences = {number: confidence for number, (confidence, _, _) in enumerate(runs)}
    truth = sum(correct for _, correct, _ in runs) / len(runs)
    gap = sum(confidences.values()) / len(runs) - truth
    traces = [trace for _, _, trace in runs]

    weighted = cal.labels(traces)
    assert weighted.left_out["not drawn for the audit"] > 100
    accuracy, error, size = shares(weighted, confidences)
    margin = 4 * math.sqrt(0.25 / size)
    assert abs(accuracy - truth) < margin < 0.06
    assert abs(error - gap) < margin

    everything = cal.labels(traces, volunteered=True)
    count = len(everything.labels)
    biased = cal.Labels(traces=everything.traces, labels=everything.labels, weights=[1.0] * count)
    accuracy, error, _ = shares(biased, confidences)
    assert truth - accuracy > 2 * margin
    assert count - len(weighted.labels) == weighted.left_out["not drawn for the audit"]


def test_a_thinned_sample_is_like_all_runs():
    """Its shares are those of the population, without weights, and the draw does not look at the labels."""
    runs = list(deployed(8_000, 7))
    confidences = {number: confidence for number, (confidence, _, _) in enumerate(runs)}
    truth = sum(correct for _, correct, _ in runs) / len(runs)
    found = cal.labels([trace for _, _, trace in runs])
    thinned = cal.thin(found, seed=1)
    accuracy, _, size = shares(thinned, confidences)
    assert {1.0} == set(thinned.weights)
    assert abs(size - RATE * len(runs)) < 120
    assert abs(accuracy - truth) < 4 * math.sqrt(0.25 / size)
    silent = sum(confidences[name] >= 0.6 for name in names(thinned)) / size
    assert abs(silent - 0.4) < 4 * math.sqrt(0.24 / size)
    assert len(found.labels) - len(thinned.labels) == thinned.left_out["thinned"]
    flipped = cal.Labels(traces=found.traces, labels=[not label for label in found.labels], weights=found.weights)
    assert names(thinned) == names(cal.thin(flipped, seed=1))
    assert names(thinned) != names(cal.thin(found, seed=2))


@given(st.lists(st.floats(0.01, 1), max_size=30), st.integers(0, 5))
def test_thinning_keeps_the_rarest(probabilities, seed):
    """Runs with the largest weight all stay; equal weights keep everything."""
    found = cal.labels([labelled(n, True, probability=p) for n, p in enumerate(probabilities)])
    thinned = cal.thin(found, seed)
    rarest = [n for n, p in enumerate(probabilities) if p == min(probabilities)]
    assert set(rarest) <= set(names(thinned))
    even = cal.thin(cal.Labels(traces=found.traces, labels=found.labels, weights=[3.0] * len(found.labels)), seed)
    assert found.traces == even.traces


@given(st.lists(st.tuples(st.floats(0.01, 1), st.booleans()), min_size=1, max_size=30), st.integers(0, 5))
def test_thinning_first_or_by_the_weights_is_the_same(rows, seed):
    """`risk_thresholds` draws from the weights the sample that `thin` returns."""
    found = cal.labels([labelled(n, correct, probability=p) for n, (p, correct) in enumerate(rows)])
    thinned = cal.thin(found, seed)
    confidence, risks = [n / 100 for n in names(found)], {"notify": 0.4}
    weighted = cal.risk_thresholds(confidence, found.labels, risks, weights=found.weights, seed=seed)
    plain = cal.risk_thresholds([n / 100 for n in names(thinned)], thinned.labels, risks)
    assert (plain.n, plain.thresholds, plain.errors) == (weighted.n, weighted.thresholds, weighted.errors)


def test_labels_of_many_sources_are_counted(store):
    """What a profile records of the labels it was fitted on."""
    assert {"user": 3, "approval": 1} == Counter(cal.labels(store, ["user", "approval"]).sources)


def test_a_path_may_look_like_a_url(tmp_path, monkeypatch):
    """A file that exists is a file."""
    monkeypatch.chdir(tmp_path)
    Path("runs:1.jsonl").write_text(json.dumps(labelled(1, True)))
    assert [True] == cal.labels("runs:1.jsonl").labels
