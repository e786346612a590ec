"""`grace-kp traces show` gives whole contents, gates, nested runs and tokens, and survives any foreign trace."""

from __future__ import annotations

import contextlib
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import grace_kp as gk
from grace_kp.cli._show import Sheet
from grace_kp.store import open_store
from tests.cli.documents import document, planner_id

KEYS = [
    "status", "confidence", "value", "scores", "decisions", "calls", "children", "parent", "model_calls", "usage", "duration_ms", "error",
    "dropped_steps", "tags", "session", "user", "metadata",
]  # fmt: skip
NAMES = [
    "breakdown", "penalties", "own", "score", "level", "not_evaluated", "novelty", "overrides", "name", "diagnosis", "suite", "passed", "step",
    "status", "tool_call", "input_tokens", "model", "latency_ms", "arguments", "response", "modified", "reviewer", "trace_id", "type",
]  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


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
    ):
        assert piece in shown
    assert re.search(r"cancel by ana, after \d+\.\d s, user input: too much", shown)
    assert "\x1b" not in shown


def test_show_leaves_out_what_does_not_explain_the_run_and_full_does_not(command, recorded):
    """Ids, digests, the version of the policy, and the parts of the value score."""
    name = planner_id(command, recorded)
    page, whole = (
        command("traces", "show", name, "--store", recorded, *more, columns=80).stdout for more in ([], ["--full"])
    )
    for piece in ("id          kp:", "agent       ", "policy version", "executed digest", "complexity", "after step"):
        assert (piece in page, piece in whole) == (False, True)
    assert "factors not evaluated; --full shows all" in page


def test_show_of_a_gated_run_fits_a_small_terminal(command, tmp_path):
    """Objective, steps, result, confidence and gate in 24 lines of 80 columns, with room for the command and the next prompt."""
    store = f"sqlite:///{tmp_path / 'traces.db'}"
    with gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None) as grace:

        @grace.retriever
        def search(query):
            return [{"text": "Refunds take 5 days.", "score": 0.93, "source": "policy.md"}]

        @grace.gate(floor="confirm")
        @grace.tool
        def pay_back(customer, euros):
            return "paid"

        with grace.run("When do I get my money back?"):
            search("When do I get my money back?")
            with contextlib.suppress(gk.ActionNotApproved):
                pay_back("Ana", 20)
    lines = command("traces", "show", "last", "--store", store, columns=80).stdout.splitlines()
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 80


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


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, ANYTHING)), st.sampled_from([24, 80]))
def test_show_survives_what_stands_under_grace(grace, width):
    """Imported traces may hold anything there."""
    file = io.StringIO()
    sheet = Sheet(Console(file=file, width=width), nested=True, store=open_store("memory:"))
    sheet.print(gk.ReasoningTrace.model_validate(document("abcdef", **grace)))
    assert "run abcdef" in file.getvalue()


@pytest.mark.parametrize("full", [False, True])
def test_show_names_a_fallback_once(full):
    """The confidence has it; the decision repeats it only in full. A trace without an agent says so."""
    file = io.StringIO()
    decision = {"action": "pay", "outcome": "waiting", "fallbacks": {"source_agreement": 0.5}}
    trace = gk.ReasoningTrace.model_validate(document("abcdef", decisions=[decision]))
    trace.metadata.agent_id = None
    Sheet(Console(file=file, width=80), full=full).print(trace)
    assert (full, full) == ("fallbacks" in file.getvalue(), "agent       -\n" in file.getvalue())


def test_show_writes_a_file_that_can_be_mailed(command, recorded, tmp_path):
    """The whole run as HTML; a folder is refused in one line."""
    name = planner_id(command, recorded)
    shown = command("traces", "show", name, "--store", recorded, "--html", str(tmp_path / "run.html"))
    assert "run.html" in shown.stdout
    assert "plan" in (tmp_path / "run.html").read_text(encoding="utf-8")
    refused = command("traces", "show", name, "--store", recorded, "--html", str(tmp_path))
    assert 1 == refused.returncode
    assert "is a folder; name a file in it" in refused.stderr


def test_a_run_that_waited_says_what_became_of_its_request(command, url):
    """In a list it has neither succeeded nor failed; its page and its JSON state the decision and the execution."""
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=gk.InboxReviewer(wait="raise")) as grace:

        @grace.gate(key="refund:{order}", floor="confirm")
        def refund(order):
            return f"refunded {order}"

        @grace.agent
        def nested():
            refund("A-1")

        with pytest.raises(gk.ActionPending) as pending, grace.run("refund", name="job") as run:
            nested()
        shown = command("traces", "show", run.id, "--store", url).stdout
        assert ("waiting\n" in shown, "since then" in shown) == (True, False)
        assert "ended by    ActionPending: refund has not run" in shown
        grace.approvals.approve(pending.value.approval.id, by="ana")
        assert "approved by ana" in command("traces", "show", run.id, "--store", url).stdout
        grace.approvals.execute(pending.value.approval.id)
    shown = command("traces", "show", run.id, "--store", url).stdout
    assert 0 < shown.find("ended by") < shown.find("since then  refund: done, approved by ana")
    document = json.loads(command("traces", "show", run.id, "--store", url, "--json").stdout)
    assert "done" == document["grace"]["pending"]["approval"]["now"]["state"]
    assert 2 == command("traces", "show", run.id, "--store", url, "--nested").stdout.count(
        "refund: done, approved by ana"
    )
    listed = command("traces", "list", "--store", url, "--status", "waiting", columns=200).stdout
    assert " - " in listed.splitlines()[2]
    assert "no traces match" in command("traces", "list", "--store", url, "--failed").stdout
