"""Documents of any form are read."""

from __future__ import annotations

from hypothesis import given

from grace_kp.trace import Links, ReasoningTrace, run_head, run_timeline, run_title, run_tree, run_waterfall
from tests.pages.reading import Elements
from tests.trace.html.hostile import attacked, check, documents
from tests.trace.html.traces import document, full


def test_a_trace_and_its_document_look_the_same():
    """Both forms are accepted."""
    assert run_timeline(full()) == run_timeline(ReasoningTrace.model_validate(full()))


def test_values_of_other_types_do_no_harm():
    """Numbers that are none, booleans as numbers, lists as objects."""
    steps = [
        None,
        5,
        {"step_id": True, "type": 7, "latency_ms": "long", "tool": [], "input": "x"},
        {"latency_ms": 10**400},
    ]
    odd = {
        "steps": steps,
        "grace": {"calls": 5, "decisions": [None, {"step": -1}], "model_calls": {}, "duration_ms": float("nan")},
    }
    assert 'id="step-3"' in run_timeline(odd)
    assert '<ol class="steps">' in run_timeline({})


@given(documents())
def test_a_run_with_anything_in_its_fields_is_shown(run):
    """Whatever another program wrote: no error, no foreign markup, no foreign link."""
    nested = {"kp:trace:2": run}
    check(run_head(run) + run_timeline(run))
    check(run_tree(run, nested=nested.get))
    check(run_waterfall(run))
    assert isinstance(run_title(run), str)


def test_markup_in_every_field_stays_text():
    """All texts and names are escaped."""
    links = Links(run=lambda name: name, step=lambda name, place: name, approval=lambda name: name)
    for shown in (run_head, run_timeline, run_tree, run_waterfall):
        found = check(shown(attacked(), links=links))
        assert "<script>alert(1)</script>" in found.text


def test_times_are_shown_in_utc():
    """A text that is no time stays as it is."""
    run = document([{"type": "thought"}])
    run["metadata"]["created_at"] = "2026-01-02T03:04:05+09:00"
    assert '<time datetime="2026-01-01T18:04:05.000Z">2026-01-01 18:04:05 UTC</time>' in run_head(run)
    run["metadata"]["created_at"] = "soon"
    assert "soon" in Elements(run_head(run)).text
