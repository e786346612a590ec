"""A run in a notebook and as a file, from documents that hold anything."""

from __future__ import annotations

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.trace import Links, run_head, run_timeline, run_title, run_tree, run_waterfall
from grace_kp.trace.html import run_excerpt, run_page
from tests.pages.reading import Elements, problems
from tests.trace.html.traces import attacked, check, document, documents, full

HOSTILE = '<img src=x onerror=alert(1)></title><script>alert(1)</script>"&\u202e'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def filled(value):
    """A document with the same value in place of every text."""
    if isinstance(value, dict):
        return {name: filled(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(filled, value))
    return HOSTILE if isinstance(value, str) else value


def test_the_file_holds_the_whole_run():
    """Objective, figures, steps, durations, tree and JSON, in the order of its headings."""
    found = run_page(full())
    page = Elements(found)
    headings = [tag for tag, _ in page.elements if tag in {"h1", "h2"}]
    assert "h1" == headings[0]
    assert 1 == headings.count("h1")
    for words in ("Steps", "Durations", "Tree", "JSON", "Refunded 45.00"):
        assert words in page.text
    assert [] == problems(found)


def test_the_browser_is_told_to_run_and_load_nothing():
    """Whatever the file should hold by mistake."""
    policies = [
        element["content"]
        for tag, element in Elements(run_page(full())).elements
        if tag == "meta" and "http-equiv" in element
    ]
    assert ["default-src 'none'; style-src 'unsafe-inline'"] == policies


def test_every_text_of_a_trace_is_text():
    """In the title, too."""
    found = run_page(filled(full()))
    assert [] == problems(found)
    assert "\u202e" not in found


def test_a_long_json_is_cut_with_a_note():
    """So that a mail program can open the file."""
    found = run_page(document([{"type": "thought", "content": "x" * 2_500_000}]))
    assert "more characters are not shown here." in found
    assert len(found) < 2_200_000


def test_a_tree_of_many_steps_is_folded():
    """A short one is open."""
    steps = [{"type": "thought", "content": "x"} for _ in range(61)]
    assert "<details><summary>calls" in run_page(document(steps))
    assert "<details open><summary>calls" in run_page(document(steps[:60]))


@given(JSON)
def test_any_document_can_be_shown(value):
    """Another program may have written it."""
    parts = dict.fromkeys(("id", "metadata", "task", "steps", "outcome", "grace"), value)
    for run in (
        parts,
        {"grace": dict.fromkeys(full()["grace"], value), "steps": [value, {"type": value, "tool": {"name": value}}]},
    ):
        for found in (Elements(run_page(run)), Elements(run_excerpt(run))):
            assert [] == found.unbalanced
            assert "script" not in found.tags


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


def test_an_excerpt_shows_the_figures_and_the_steps():
    """A short run is unfolded, and no heading gets into the table of contents of a notebook."""
    found = run_excerpt(full())
    page = Elements(found)
    assert "Refunded 45.00" in page.text
    assert "<details open><summary>10 steps</summary>" in found
    assert set() == page.tags & {"h1", "h2", "h3", "h4"}
    assert [] == problems(found)


@pytest.mark.parametrize(("count", "size"), [(2_000, 300), (2_000, 60_000)])
def test_long_runs_stay_small(count, size):
    """Fewer steps are shown the longer they are, with a note that says where the whole run is."""
    steps = [{"type": "observation", "content": "x" * size, "output_summary": "y" * size} for _ in range(count)]
    found = run_excerpt(document(steps))
    assert len(found) < 500_000
    assert "`trace.to_html(path)` writes the whole run." in found


def test_steps_that_are_too_long_are_left_out():
    """Here the decisions between them."""
    run = document([{"type": "thought"}], decisions=[{"action": "a", "reason": "x" * 300}] * 3_000)
    found = run_excerpt(run)
    assert "The steps are too long for a notebook. `trace.to_html(path)` writes the whole run." in found
    assert len(found) < 500_000


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
    if "reason" in confidence:
        text = Elements(found).text
        for words in (
            "search quality0.930",
            "llm self eval",
            "no sources",
            "Search <b>93</b>.",
            "0.250",
            "another model",
        ):
            assert words in text


def test_a_trace_is_written_as_one_file(trace, tmp_path):
    """Private to its owner; the path is returned."""
    path = trace.to_html(tmp_path / "run.html")
    assert tmp_path / "run.html" == path
    assert trace.to_html() == path.read_text(encoding="utf-8")
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == list(tmp_path.iterdir())
    assert [] == problems(trace.to_html())


def test_a_folder_is_refused(trace, tmp_path):
    """The error names it and says what to write."""
    with pytest.raises(IsADirectoryError, match=r"is a folder; name a file in it, such as run\.html: '"):
        trace.to_html(tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_half_a_surrogate_pair_can_be_written(trace, tmp_path):
    """JSON holds it, and UTF-8 does not."""
    document = trace.to_dict()
    document["task"]["objective"] = "a\ud800b"
    path = gk.ReasoningTrace.model_validate(document).to_html(tmp_path / "run.html")
    assert "a⟨U+D800⟩b" in path.read_text(encoding="utf-8")
