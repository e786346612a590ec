"""A trace in a notebook and as a file."""

from __future__ import annotations

import stat

import pytest

import grace_kp as gk
from tests.pages.reading import Elements, problems


@pytest.fixture
def trace():
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None)

    @grace.tool
    def look_up(city):
        return f"{city} <b>is</b> dry"

    @grace.agent
    def forecast(city):
        return look_up(city)

    with grace.collect() as found:
        forecast("Lima")
    return found[0]


def test_a_trace_shows_itself_in_a_notebook(trace):
    """Without a server, a script or anything from elsewhere."""
    found = trace._repr_html_()
    assert found.startswith('<div class="grace-kp"><style>')
    assert "Lima <b>is</b> dry" in Elements(found).text
    assert [] == problems(found)


CONFIDENCES = [
    {"score": 0.5},
    {"score": 0.958, "level": "high", "breakdown": {"search_quality": 0.93, "llm_self_eval": None}, "not_evaluated": ["llm_self_eval"],
     "penalties": ["no_sources"], "reason": "Search <b>93</b>.", "profile": "grace", "own": 0.25, "mismatches": ["another model"]},
    {"score": 0.2, "contributions": {"steps": -0.4, "huge": 1e300}, "fallback": True, "run_failed": True, "level": {"a": 1}},
    {"score": 1.0, "breakdown": {"other": 7.0, "<i>": "text", "more": [1]}, "penalties": [3, {}], "not_scored": "x", "unknown": {}},
]  # fmt: skip


@pytest.mark.parametrize("confidence", CONFIDENCES, ids=["least", "full", "learned", "foreign"])
def test_the_confidence_of_a_trace_shows_itself_in_a_notebook(trace, confidence):
    """Whatever the trace holds of it; texts are escaped."""
    document = trace.to_dict()
    document["grace"]["confidence"] = confidence
    found = gk.ReasoningTrace.model_validate(document).confidence._repr_html_()
    assert f"{confidence['score']:.3f}" in Elements(found).text
    assert [] == problems(found + found)


def test_the_confidence_in_a_notebook_has_its_parts(trace):
    """Numbers, what is missing, penalties, the reason, and what the run stated."""
    document = trace.to_dict()
    document["grace"]["confidence"] = CONFIDENCES[1]
    text = Elements(gk.ReasoningTrace.model_validate(document).confidence._repr_html_()).text
    for words in ("search quality0.930", "llm self eval", "no sources", "Search <b>93</b>.", "0.250", "another model"):
        assert words in text


def test_two_outputs_of_a_trace_share_no_id(trace):
    """A notebook may show the same trace twice."""
    assert [] == problems(trace._repr_html_() + trace._repr_html_())


def test_a_trace_is_written_as_one_file(trace, tmp_path):
    """Private to its owner; the path is returned."""
    path = trace.to_html(tmp_path / "run.html")
    assert tmp_path / "run.html" == path
    assert trace.to_html() == path.read_text(encoding="utf-8")
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == list(tmp_path.iterdir())
    assert [] == problems(trace.to_html())


def test_an_existing_file_is_replaced(trace, tmp_path):
    """As a whole."""
    (tmp_path / "run.html").write_text("x" * 1_000_000)
    trace.to_html(str(tmp_path / "run.html"))
    assert trace.to_html() == (tmp_path / "run.html").read_text(encoding="utf-8")


def test_a_folder_is_refused(trace, tmp_path):
    """The error names it and says what to write."""
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it, such as run\.html: '"):
        trace.to_html(tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_a_missing_folder_is_named(trace, tmp_path):
    """Nothing is created."""
    with pytest.raises(FileNotFoundError, match=r"missing/run\.html"):
        trace.to_html(tmp_path / "missing" / "run.html")


def test_half_a_surrogate_pair_can_be_written(trace, tmp_path):
    """JSON holds it, and UTF-8 does not."""
    document = trace.to_dict()
    document["task"]["objective"] = "a\ud800b"
    path = gk.ReasoningTrace.model_validate(document).to_html(tmp_path / "run.html")
    assert "a⟨U+D800⟩b" in path.read_text(encoding="utf-8")
