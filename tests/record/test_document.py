"""The document of a run holds what is captured, without secrets; a run that waits is found again and continued at most once."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.record import Conversations, Documents, Pause, _json, current_run, to_json
from grace_kp.record._document import merged_entries, named_secrets, stored_entry, without
from grace_kp.record._resume import EarlierPart, left_without_answer
from grace_kp.runtime import record_of
from tests.record.conftest import agent_of


def test_structure_without_content(monkeypatch):
    """CAPTURE_INPUT and CAPTURE_OUTPUT off keep names and timings and nothing that was said."""
    monkeypatch.setenv("GRACE_KP_CAPTURE_INPUT", "0")
    monkeypatch.setenv("GRACE_KP_CAPTURE_OUTPUT", "0")
    grace = gk.Grace(store="memory:")

    @grace.tool
    def fetch(what):
        return f"confidential {what}"

    @grace.agent
    def root(question):
        return fetch(question)

    with grace.collect() as traces:
        root("confidential question")
    text = traces[0].to_json()
    assert "confidential" not in text
    assert traces[0].steps[0].tool.name == "fetch"
    assert traces[0].steps[0].latency_ms >= 0


def test_a_trace_counts_texts_that_were_not_scanned_to_their_end(grace, monkeypatch):
    monkeypatch.setattr("grace_kp.trace.redaction._scan.MAX_CHARACTERS", 8_000)
    monkeypatch.setattr("grace_kp.trace.redaction._scan.Scan.LONGEST_EXPECTED", 8_000)
    with grace.collect() as traces:
        agent_of(grace)("word " * 2_500)
    (trace,) = traces
    assert 3 == trace.grace["unscanned_texts"]
    assert trace.steps[-1].content.endswith("word [REDACTED:unscanned]")


def test_an_open_run_has_a_document_of_its_own(grace):
    """It holds the steps so far, redacted and without an answer; whatever is done to it, the trace stays as it would have been."""
    documents, seen = Documents(privacy_level="private", visibility="private", max_text=1_000), []

    @grace.tool
    def look(query):
        return {"found": query, "password": "hunter22"}

    @grace.agent(tags=["nightly"], metadata={"task": 3})
    def agent(question):
        look("a")
        for _ in range(2):
            document = documents.build_open(current_run())
            seen.append(copy.deepcopy(document))
            document["steps"][0]["input"].clear()
            document["steps"].clear()
            document["grace"]["calls"][0].clear()
            document["grace"]["metadata"].clear()
        look("b")
        return "done"

    with grace.collect() as traces:
        agent("question")
    (trace,) = traces
    assert seen[0] == seen[1]
    document = seen[0]
    assert ("open", ["nightly"], {"task": 3}) == tuple(
        document["grace"][name] for name in ("status", "tags", "metadata")
    )
    assert ("", "question", "kp:agent:agent") == (
        document["outcome"]["result_summary"], document["task"]["objective"], document["metadata"]["agent_id"],
    )  # fmt: skip
    assert "hunter22" not in str(document)
    finished = trace.to_dict()
    assert finished["steps"][:2] == document["steps"]
    assert trace.grace["calls"][:1] == document["grace"]["calls"]
    assert (4, {"task": 3}) == (len(trace.steps), trace.run_metadata)


def test_an_audit_that_selected_a_run_tags_it(grace):
    """The store finds it among the runs; the tag comes first, because what is too much is cut."""
    with grace.collect() as traces:
        for selected in (True, False, None):
            with grace.run("x", tags=["nightly", *map(str, range(60))]) as run:
                audit = {} if selected is None else {"audit": {"rate": 0.5, "selected": selected}}
                run.decisions.append({"action": "pay", "outcome": "executed", **audit})
    assert [("audit:selected", "nightly"), ("nightly", "0"), ("nightly", "0")] == [trace.tags[:2] for trace in traces]
    assert [50, 50, 50] == [len(trace.tags) for trace in traces]


def test_classes_of_exceptions_are_redacted():
    """In a tool, a nested run and the run itself; their names may hold what their messages may."""
    secret = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
    named, grace = type(secret, (Exception,), {}), gk.Grace(store="memory:")

    @grace.tool
    def fails():
        raise named("x")

    @grace.agent
    def inner():
        fails()

    with contextlib.suppress(named), grace.run("outer"):
        inner()
    documents = [trace.to_json() for trace in grace.store.query()]
    assert (2, []) == (len(documents), [text for text in documents if secret in text])
    assert "[REDACTED:api_key]" == grace.store.query()[0].grace["error"]["type"]


ENTRY = {
    "id": "1",
    "action": "login",
    "outcome": "failed",
    "arguments": {"user": "bob", "password": "hunter2hunter2"},
    "error": "ValueError: bad password hunter2hunter2",
    "response": {"action": "proceed", "user_input": "use hunter2hunter2", "modified": {"password": "swordfish99"}},
    "evaluation": {"reason": "it quotes bob"},
}


def test_an_argument_that_is_secret_by_its_name_is_removed_everywhere():
    secrets = named_secrets([ENTRY])
    assert ["hunter2hunter2", "swordfish99"] == secrets
    document = without({"decisions": [stored_entry(ENTRY, False, True, True)]}, secrets)
    assert "hunter2" not in str(document)
    assert "swordfish" not in str(document)
    assert "bob" == document["decisions"][0]["arguments"]["user"]


@pytest.mark.parametrize(
    ("capture", "arguments", "user_input"),
    [
        ({"capture_input": False}, "[not captured]", "[not captured]"),
        ({"capture_output": False}, "bob", "[not captured]"),
    ],
)
def test_without_captured_contents_structure_stays(capture, arguments, user_input):
    """Names of arguments, outcomes and types of errors stay; values and words of people do not."""
    stored = stored_entry(ENTRY, False, **{"capture_input": True, "capture_output": True, **capture})
    assert ("login", "failed", "ValueError") == (stored["action"], stored["outcome"], stored["error"])
    assert (arguments, user_input) == (stored["arguments"]["user"], stored["response"]["user_input"])
    assert "[not captured]" == stored["evaluation"]["reason"]


@pytest.mark.parametrize(
    ("earlier", "later", "merged"),
    [
        ("waiting", "executed", ["executed"]),
        ("executed", "executed_before", ["executed"]),
        ("waiting", "executed_before", ["executed_before"]),
        ("failed", "executed", ["executed"]),
    ],
)
def test_each_decision_has_one_entry_after_a_resume(earlier, later, merged):
    """The later outcome counts, unless it states merely that the action ran before."""
    found = merged_entries([{"id": "1", "outcome": earlier}], [{"id": "1", "outcome": later}])
    assert merged == [entry["outcome"] for entry in found]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())
)
KEYS = st.text(st.characters()) | st.integers() | st.none() | st.booleans()
VALUES = st.recursive(SCALARS, lambda values: st.lists(values) | st.dictionaries(KEYS, values), max_leaves=12)


def without_orjson(value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json, "dumps", None)
        return to_json(value)


@given(VALUES)
def test_orjson_writes_the_same_bytes_as_pydantic(value):
    """Floats, large integers, keys of any type, control characters and half surrogate pairs included."""
    assert without_orjson(value) == to_json(value)


def test_half_a_surrogate_pair_becomes_a_question_mark():
    assert b'{"a":"x?y"}' == to_json({"a": "x\ud800y"}) == without_orjson({"a": "x\ud800y"})


def suspended(number=1, *, thread="t", checkpoint="c1", place=None, steps=(1, 2), **grace):
    facts = {"thread_id": thread, "checkpoint_id": checkpoint, "place": place, "steps": list(steps)}
    facts = {name: value for name, value in facts.items() if value is not None}
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:00000000-0000-4000-8000-{number:012d}",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:app", "framework": "frame",
            "task_domain": "default", "success": True, "quality_score": 0.0, "visibility": "private",
            "privacy_level": "private",
        },
        "task": {"objective": "q"},
        "steps": [{"step_id": 0, "type": "thought", "content": "hm"}],
        "outcome": {"result_summary": "", "confidence": 0.5},
        "grace": {"status": "suspended", "name": "app", "frame": facts, **grace},
    }  # fmt: skip


@pytest.fixture
def writer():
    with gk.Grace(store="memory:", evaluator=None, embedder=None) as grace:
        yield grace._writer


def conversations_of(writer):
    return Conversations(writer.store, writer.write_now, writer.write_pending)


@pytest.fixture
def conversations(writer):
    return conversations_of(writer)


def put(writer, *documents):
    writer.store().put([record_of(document) for document in documents])


@pytest.mark.parametrize(
    ("pause", "found"),
    [
        (Pause("t", "c1", None), True),
        (Pause("t", "c2", None), False),
        (Pause("u", "c1", None), False),
        (Pause("t", None, "node:1"), False),
    ],
)
def test_a_run_is_found_by_thread_checkpoint_and_place(writer, conversations, pause, found):
    put(writer, suspended())
    assert found == (conversations.find(pause, pause.thread) is not None)


def test_an_imported_run_is_not_continued(writer, conversations):
    put(writer, suspended(imported=True))
    assert conversations.find(Pause("t", "c1", None), "t") is None
    nested = suspended(imported=True)["id"]
    calls = [{"call_id": "c0", "tool_call": 0, "status": "ok", "child": nested}]
    assert {nested: [None]} == conversations.nested_in(suspended(2, calls=calls))


def test_a_store_that_fails_leaves_a_new_run(conversations, writer, monkeypatch, caplog):
    def broken(**conditions):
        raise gk.StoreError("gone")

    monkeypatch.setattr(writer.store(), "query", broken)
    assert conversations.find(Pause("t", "c1", None), "t") is None


def test_a_suspended_run_is_continued_once_for_each_time_it_waited(conversations):
    assert [True, False] == [conversations.claim(suspended()) for _ in range(2)]
    assert [True, False] == [conversations.claim(suspended(resumed=1)) for _ in range(2)]


@pytest.mark.parametrize(("stored", "rival"), [(0, False), (1, True), (2, True)])
def test_a_rival_of_another_process_is_seen_in_the_store(writer, conversations, stored, rival):
    put(writer, suspended(resumed=stored))
    assert rival == conversations.has_rival(suspended(resumed=1))


def test_of_two_processes_that_end_at_the_same_moment_one_keeps_the_trace(writer):
    """Neither has stored its trace when the other one looks; without this, one trace would replace the other."""
    first, second = conversations_of(writer), conversations_of(writer)
    put(writer, suspended())
    assert [False, True, False] == [process.has_rival(suspended(resumed=1)) for process in (first, second, first)]
    assert not second.has_rival(suspended(resumed=2))


def test_a_thread_that_moves_on_closes_what_it_leaves_behind(writer, conversations):
    """Also the runs nested in it; a run that is being continued stays."""
    nested = suspended(2, place="node:1", checkpoint=None, parent={"trace_id": suspended()["id"], "call_id": "c0"})
    taken = suspended(3)
    put(writer, suspended(), nested, taken)
    conversations.claim(taken)
    closed = conversations.close_superseded(suspended(9, steps=(3, 4), status="completed"), record_of)
    assert {suspended()["id"], nested["id"]} == {document["id"] for document in closed}
    stored = writer.store().get(suspended()["id"])
    assert ("closed", False) == (stored.grace["status"], stored.metadata.success)
    assert "suspended" == writer.store().get(taken["id"]).grace["status"]


def test_the_first_run_of_a_thread_leaves_nothing_behind(writer, conversations):
    put(writer, suspended())
    assert [] == conversations.close_superseded(suspended(9, steps=(1, 2)), record_of)


@pytest.mark.parametrize("other", [{"thread": "u"}, {"steps": (5, 6)}, {"place": "node:1"}])
def test_other_threads_and_later_steps_are_not_superseded(other):
    assert [] == left_without_answer(suspended(9, steps=(3, 4)), [suspended(**other)])


def test_steps_that_are_run_again_are_left_out():
    """What remains is numbered anew, and calls that had been carried out in the repeated part are named."""
    document = suspended(
        repeats=[1, 2],
        repeated=["before"],
        calls=[
            {"call_id": "c0", "name": "again", "tool_call": 1, "observation": 2, "status": "ok"},
            {
                "call_id": "c1",
                "name": "fail",
                "tool_call": 3,
                "status": "error",
                "error": {"type": "E", "message": "m"},
            },
            {"call_id": "c2", "name": "inner", "tool_call": 4, "observation": 2, "status": "ok", "parent": "c1"},
        ],
    )
    document["steps"] = [{"step_id": number, "type": "thought", "content": str(number)} for number in range(5)]
    part = EarlierPart(document)
    assert [(0, "0"), (1, "3"), (2, "4")] == [(step["step_id"], step["content"]) for step in part.steps]
    assert ["before", "again"] == part.repeated
    assert [("c0", 1), ("c1", 2)] == [(call["call_id"], call["tool_call"]) for call in part.calls]
    assert "c0" == part.calls[1]["parent"]
    assert "observation" not in part.calls[1]
    assert ["fail"] == [call["name"] for call in part.pending]
