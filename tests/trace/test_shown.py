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
