"""The document of a run holds what is captured, without secrets, as the same JSON with orjson and without it."""

from __future__ import annotations

import contextlib
import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.record import Documents, _json, current_run, to_json
from grace_kp.record._document import merged_entries, named_secrets, stored_entry, without


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


def agent_of(grace):
    @grace.tool
    def look(query):
        return query

    @grace.agent
    def agent(question):
        return look(question)

    return agent


def test_a_trace_counts_texts_that_were_not_scanned_to_their_end(grace, monkeypatch):
    """Their ends are removed unread."""
    monkeypatch.setattr("grace_kp.trace.redaction._scan.MAX_CHARACTERS", 8_000)
    monkeypatch.setattr("grace_kp.trace.redaction._scan.Scan.LONGEST_EXPECTED", 8_000)
    with grace.collect() as traces:
        agent_of(grace)("word " * 2_500)
    (trace,) = traces
    assert 3 == trace.grace["unscanned_texts"]
    assert trace.steps[-1].content.endswith("word [REDACTED:unscanned]")


def test_other_traces_say_nothing_of_it(grace):
    """Ordinary texts are scanned to their end."""
    with grace.collect() as traces:
        agent_of(grace)("word " * 2_500)
    assert "unscanned_texts" not in traces[0].grace


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
            document = documents.open(current_run())
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
    """Also where a reviewer's words or an error repeat it."""
    secrets = named_secrets([ENTRY])
    assert ["hunter2hunter2", "swordfish99"] == secrets
    document = without({"decisions": [stored_entry(ENTRY, identifiers=False)]}, secrets)
    assert "hunter2" not in str(document)
    assert "swordfish" not in str(document)
    assert "bob" == document["decisions"][0]["arguments"]["user"]


def test_short_arguments_are_too_common_to_be_removed_everywhere():
    assert [] == named_secrets([{"arguments": {"password": "abc"}}])


def test_without_secrets_a_document_is_the_same_object():
    document = {"steps": [1]}
    assert without(document, []) is document


@pytest.mark.parametrize(
    ("capture", "arguments", "user_input"),
    [
        ({"capture_input": False}, "[not captured]", "[not captured]"),
        ({"capture_output": False}, "bob", "[not captured]"),
    ],
)
def test_without_captured_contents_structure_stays(capture, arguments, user_input):
    """Names of arguments, outcomes and types of errors stay; values and words of people do not."""
    stored = stored_entry(ENTRY, identifiers=False, **capture)
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


@pytest.fixture
def without_orjson(monkeypatch):
    """Returns what is written where orjson is not installed."""

    def encode(value):
        with monkeypatch.context() as patch:
            patch.setattr(_json, "dumps", None)
            return to_json(value)

    return encode


@given(VALUES)
def test_orjson_writes_the_same_bytes_as_pydantic(value):
    """Floats, large integers, keys of any type, control characters and half surrogate pairs included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_json, "dumps", None)
        expected = to_json(value)
    assert expected == to_json(value)


@pytest.mark.parametrize("number", [0.0, -0.0, 1e15, 1e16, 1e21, 1e-5, 1e-7, 5e-324, 0.1 + 0.2, 2**63, -(2**63), 2**64])
def test_numbers_are_written_in_the_same_form(number, without_orjson):
    """Readers compare traces by their text."""
    assert without_orjson([number]) == to_json([number])


@pytest.mark.parametrize("number", [0.1, -0.0, 1e300, 5e-324, 2**80])
def test_numbers_come_back_as_they_were(number):
    """Nothing is rounded."""
    assert repr([number]) == repr(json.loads(to_json([number])))


def test_half_a_surrogate_pair_becomes_a_question_mark(without_orjson):
    """UTF-8 cannot hold it."""
    assert b'{"a":"x?y"}' == to_json({"a": "x\ud800y"}) == without_orjson({"a": "x\ud800y"})
