"""`grace-kp traces list` and `show` as people use them: every figure, whole contents, gates, nested runs, ids by their beginning."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import grace_kp as gk
from grace_kp.cli._show import Sheet
from grace_kp.store import open_store

KEYS = [
    "status", "confidence", "value", "scores", "decisions", "calls", "children", "parent", "model_calls", "usage", "duration_ms", "error",
    "dropped_steps", "tags", "session", "user", "metadata",
]  # fmt: skip
NAMES = [
    "breakdown", "penalties", "own", "score", "level", "not_evaluated", "novelty", "overrides", "name", "diagnosis", "suite", "passed", "step",
    "status", "tool_call", "input_tokens", "model", "latency_ms", "arguments", "response", "modified", "reviewer", "trace_id", "type",
]  # fmt: skip
WIDTHS = [200, 120, 80, 60, 40]
LONG = "京都に旅行するので、天気と持ち物について詳しく教えてください。" * 3


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'traces.db'}"


def reviewer(request):
    if request.action == "pay":
        return gk.InterventionResponse("cancel", user_input="too much", reviewer="ana")
    return gk.InterventionResponse("modify", modified={"path": "safe.txt"}, reviewer="ana")


@pytest.fixture
def recorded(url):
    """Three runs: one with gates and a nested run, the nested one, and one that failed."""
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=reviewer, domain="travel") as grace:

        @grace.gate(floor="confirm")
        @grace.tool
        def write(path: str, text: str) -> str:
            return f"wrote {path}"

        @grace.gate(floor="confirm")
        @grace.tool
        def pay(euros: int) -> str:
            return "paid"

        @grace.agent(name="helper")
        def helper(question: str) -> str:
            return "rain"

        @grace.agent
        def planner(question: str) -> str:
            grace.thought("word " * 400 + "END")
            helper("ask the helper")
            write("/etc/hosts", "two  blanks\nand \x1b[2J")
            try:
                return pay(2_000)
            except gk.ActionCancelled:
                return "first line\nsecond line"

        @grace.agent
        def broken(question: str) -> str:
            raise ValueError("no such \x1b[5mthing")

        planner(LONG)
        with pytest.raises(ValueError, match="no such"):
            broken("break")
    return url


def planner_id(command, url):
    listed = json.loads(command("traces", "list", "--store", url, "--json").stdout)
    return next(trace["id"] for trace in listed if trace["task"]["objective"] == LONG)


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_list_shows_score_and_success_at_every_width(command, recorded, columns):
    """Columns go, figures stay; success is a word, so that it reads without colour."""
    ran = command("traces", "list", "--store", recorded, columns=columns)
    rows = ran.stdout.splitlines()
    assert [len(row.split()) for row in rows if "…" in row.split()[0]] == []
    assert [] == [heading for heading in ("id", "objective", "ok", "score") if heading not in rows[0].split()]
    documents = json.loads(command("traces", "list", "--store", recorded, "--json").stdout)
    for row, document in zip(rows[2:], documents, strict=False):
        assert document["id"].removeprefix("kp:trace:")[:8] == row.split()[0]
        assert f"{document['metadata']['quality_score']:.3f}" == row.split()[-1]
        assert ("yes" if document["metadata"]["success"] else "no") in row.split()
    assert "3 of 3" == rows[-1]


def test_a_wide_terminal_shows_the_whole_objective(command, recorded):
    """Nothing is cut where there is room."""
    assert LONG in command("traces", "list", "--store", recorded, columns=300).stdout


def test_a_list_says_how_many_there_are(command, recorded):
    """Those shown, and those that match."""
    ran = command("traces", "list", "--store", recorded, "--limit", "1", columns=80)
    assert "1 of 3; --limit shows more" == ran.stdout.splitlines()[-1]
    ran = command("traces", "list", "--store", recorded, "--limit", "1", "--failed", columns=80)
    assert "1 of 1" == ran.stdout.splitlines()[-1]


def test_no_colour_is_needed_to_read_a_list(command, recorded, monkeypatch):
    """The same words with and without colour."""
    plain = command("traces", "list", "--store", recorded, columns=80).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = command("traces", "list", "--store", recorded, columns=80).stdout
    assert "\x1b[" in coloured
    assert " no " in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in command("traces", "list", "--store", recorded, columns=80).stdout


def test_show_gives_contents_in_full(command, recorded):
    """Long thoughts, every line of a result, and what each gate saw, changed and answered."""
    shown = command("traces", "show", planner_id(command, recorded), "--store", recorded, columns=80).stdout
    for piece in (
        "word END",
        "result      first line\n            second line",
        "gate        write: executed modified",
        r'argument          text = "two  blanks\nand \u001b[2J"',
        'edited            path = "/etc/hosts" -> "safe.txt"',
        'executed with     path = "safe.txt"',
        "answer            modify by ana",
        "gate        pay: cancelled",
        "argument          euros = 2000",
        "cancel by ana, after 0.0 s, user input: too much",
        "executed digest",
    ):
        assert piece in shown
    assert "\x1b" not in shown


def test_show_names_nested_runs_and_shows_them_on_request(command, recorded):
    """A line for each, with its id and figures; all of each with --nested."""
    name = planner_id(command, recorded)
    shown = command("traces", "show", name, "--store", recorded, columns=100).stdout
    child = next(line for line in shown.splitlines() if line.startswith("nested")).split()[1]
    assert "ask the helper: completed, 1 step, confidence" in shown
    assert "parent" in command("traces", "show", child, "--store", recorded, columns=100).stdout
    whole = command("traces", "show", name, "--nested", "--store", recorded, columns=100).stdout
    assert f"nested run {child}" in whole
    assert "kp:agent:helper" in whole


def document(number, **grace):
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number}",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:a", "framework": "x", "task_domain": "code", "success": True,
            "quality_score": 0.5, "visibility": "private", "privacy_level": "private",
        },
        "task": {"objective": f"run {number}"},
        "steps": [{"step_id": 0, "type": "thought", "content": "I think"}],
        "outcome": {"result_summary": "done", "confidence": 0.5},
        "grace": grace,
    }  # fmt: skip


@pytest.fixture
def stored(command, tmp_path, url):
    """Puts documents into a store."""

    def put(*documents):
        path = tmp_path / "in.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
        assert command("traces", "import", path, "--store", url).returncode == 0
        return url

    return put


def test_show_gives_the_tokens_of_each_model_call_and_their_sum(command, stored):
    """Calls with and without a thought of their own, and the sum that the trace holds."""
    calls = [
        {"model": "gemini", "status": "ok", "latency_ms": 1_200.5, "input_tokens": 1_200, "output_tokens": 34, "step": 0},
        {"model": "gemini", "status": "ok", "latency_ms": 10, "input_tokens": 5, "output_tokens": 1},
    ]  # fmt: skip
    url = stored(document("abcdef", model_calls=calls, usage={"input_tokens": 1_205, "output_tokens": 35}))
    shown = command("traces", "show", "abcdef", "--store", url, columns=80).stdout
    assert "thought  gemini  1,200 input tokens  34 output tokens" in shown
    assert ["all", "2", "1,205", "35"] in [line.split() for line in shown.splitlines()]
    assert ["gemini", "-", "ok", "10", "5", "1"] in [line.split() for line in shown.splitlines()]
    narrow = command("traces", "show", "abcdef", "--store", url, columns=40).stdout
    assert "1,205" in narrow


def test_show_bounds_what_is_very_long_and_full_does_not(command, stored):
    """What is left out is said, with the option that shows it."""
    one = document("abcdef")
    one["steps"] = [
        {"step_id": number, "type": "thought", "content": f"thought number {number}"} for number in range(400)
    ]
    one["steps"][0]["content"] = "x" * 10_000 + "END"
    url = stored(one)
    shown = command("traces", "show", "abc", "--store", url, columns=80).stdout
    assert "… 200 steps; --full shows all" in shown
    assert "… 6,003 more characters; --full shows all" in shown
    assert "thought number 399" in shown
    whole = command("traces", "show", "abc", "--store", url, "--full", columns=80).stdout
    assert "thought number 200" in whole
    assert "END" in whole


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, ANYTHING)), st.sampled_from([24, 80]))
def test_show_survives_what_stands_under_grace(grace, width):
    """Imported traces may hold anything there."""
    file = io.StringIO()
    sheet = Sheet(Console(file=file, width=width), nested=True, store=open_store("memory:"))
    sheet.print(gk.ReasoningTrace.model_validate(document("abcdef", **grace)))
    assert "run abcdef" in file.getvalue()


def test_the_beginning_of_an_id_is_enough(command, stored):
    """From three characters on; several are listed, with exit code 1."""
    url = stored(document("abc111"), document("abc222"), document("xyz333"))
    assert "run xyz333" in command("traces", "show", "xyz", "--store", url).stdout
    assert "run abc1" in command("traces", "show", "kp:trace:abc1", "--store", url).stdout
    ran = command("traces", "show", "abc", "--store", url)
    assert (1, "") == (ran.returncode, ran.stdout)
    assert "grace-kp: 2 trace ids begin with 'abc': abc111, abc222; give more characters\n" == ran.stderr
    ran = command("traces", "show", "xy", "--store", url)
    assert (1, 1) == (ran.returncode, len(ran.stderr.splitlines()))
    assert "3 characters" in ran.stderr
    assert command("traces", "show", "%_%", "--store", url).returncode == 1


def test_a_status_that_no_run_can_have_is_refused(command, url):
    """Exit code 2, and the statuses that there are."""
    ran = command("traces", "list", "--store", url, "--status", "nonsense")
    assert (2, 1) == (ran.returncode, len(ran.stderr.splitlines()))
    assert "Invalid value for '--status': 'nonsense' is not one of 'completed'" in ran.stderr
    for status in ("completed", "failed", "cancelled", "closed", "exited", "interrupted", "not_approved", "suspended"):
        assert status in ran.stderr
    assert command("traces", "export", "-", "--store", url, "--status", "nonsense").returncode == 2
    assert command("traces", "list", "--store", url, "--min-score", "60").returncode == 2
