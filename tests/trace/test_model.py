"""The JSON contract: documents read back to the letter, and each broken rule names the field that breaks it."""

from __future__ import annotations

import copy
import json
import math
import pickle

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.trace import (
    Entity,
    KnowledgeGraphDelta,
    Metadata,
    Outcome,
    ReasoningTrace,
    Relationship,
    Step,
    Task,
    ToolRef,
)
from grace_kp.trace._model import location_text

FULL = {
    "@context": "https://openknowledgepulse.org/schema/v1",
    "@type": "ReasoningTrace",
    "id": "kp:trace:00000000-0000-4000-8000-000000000001",
    "source_skill": "kp:skill:refunds",
    "metadata": {
        "created_at": "2026-01-02T03:04:05.000Z",
        "agent_id": "kp:agent:analyst",
        "framework": "none",
        "task_domain": "finance",
        "success": True,
        "quality_score": 1,
        "visibility": "network",
        "privacy_level": "aggregated",
        "validated_by": ["ana", "ben"],
        "unknown": {"kept": [1, 1.0, None, "日本", True]},
    },
    "task": {"objective": "Analyse Q4", "input_schema": {"ticker": {"type": "string"}}, "unknown": 1},
    "steps": [
        {"step_id": 0, "type": "thought", "content": "", "unknown": 1.0},
        {
            "step_id": 1,
            "type": "tool_call",
            "tool": {"name": "search", "mcp_server": "web", "unknown": []},
            "input": {"q": "x", "n": 1, "f": 1.0, "deep": {"null": None}},
            "latency_ms": 12,
        },
        {"step_id": 2, "type": "observation", "output_summary": "3 rows", "latency_ms": 12.0},
        {"step_id": 3, "type": "error_recovery"},
    ],
    "outcome": {"result_summary": "", "confidence": 0.25, "unknown": False},
    "knowledge_graph_delta": {
        "entities": [{"name": "ACME", "type": "company", "unknown": 1}],
        "relationships": [{"fact": "ACME grew", "valid_from": "2026-01-01", "unknown": 2}],
        "unknown": {},
    },
    "grace": {"status": "completed", "calls": [{"call_id": "c0", "latency_ms": 1.0}]},
    "unknown": {"a": {"b": [{}]}},
}
LEAST = {
    "@context": "https://openknowledgepulse.org/schema/v1",
    "@type": "ReasoningTrace",
    "id": "kp:trace:1",
    "metadata": {
        "created_at": "2026-01-02T03:04:05Z",
        "task_domain": "x",
        "success": False,
        "quality_score": 0.0,
        "visibility": "private",
        "privacy_level": "private",
    },
    "task": {"objective": "?"},
    "steps": [{"step_id": 0, "type": "thought"}],
    "outcome": {"result_summary": "", "confidence": 0},
}


def changed(document, path, value):
    """A copy in which one place has another value; `...` as the value takes the place out."""
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document


def spelled(path):
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def text_of(document):
    """JSON text tells 1 from 1.0 and True, which `==` does not."""
    return json.dumps(document, sort_keys=True)


def refusal(document):
    with pytest.raises(gk.InvalidTrace) as raised:
        ReasoningTrace.model_validate(document)
    return raised.value


# Round trips


@pytest.mark.parametrize("document", [FULL, LEAST], ids=["full", "least"])
def test_a_document_reads_back_to_the_letter(document):
    """Integers stay integers, unknown keys stay at every level, absent optionals stay absent."""
    before = copy.deepcopy(document)
    trace = ReasoningTrace.model_validate(document)
    assert document == trace.to_dict()
    assert text_of(document) == text_of(trace.to_dict())
    assert text_of(document) == text_of(json.loads(trace.to_json()))
    assert trace == ReasoningTrace.model_validate_json(trace.to_json())
    assert trace == ReasoningTrace.model_validate_json(trace.to_json(indent=2).encode())
    assert before == document


def test_what_was_written_is_a_copy():
    """Neither the document that was read nor the one that was written is tied to the trace."""
    document = copy.deepcopy(FULL)
    trace = ReasoningTrace.model_validate(document)
    written = trace.to_dict()
    written["grace"]["calls"].clear()
    written["steps"][1]["input"]["deep"]["null"] = 1
    written["unknown"]["a"]["b"].clear()
    assert FULL == trace.to_dict()


def test_json_text_is_one_line_unless_indented():
    """Fit for JSON lines, with texts as they are."""
    trace = ReasoningTrace.model_validate(FULL)
    assert 1 == len(trace.to_json().splitlines())
    assert "日本" in trace.to_json()
    assert '\n    "created_at": ' in trace.to_json(indent=2)


def test_half_a_surrogate_pair_reads_back():
    """JSON can hold one, escaped; UTF-8 cannot, so the text that is written is fit for a file all the same."""
    document = changed(LEAST, ["task", "objective"], "cut \ud83d 日本")
    text = ReasoningTrace.model_validate(document).to_json()
    assert document == ReasoningTrace.model_validate_json(text.encode("utf-8")).to_dict()


def test_defaults_are_written():
    """Sharing is opt-in: what names no visibility is private, and says so when it is written."""
    bare = changed(LEAST, ["metadata"], {"created_at": "2026-01-02T03:04:05Z", "task_domain": "x", "success": False})
    del bare["@context"], bare["@type"]
    assert LEAST == ReasoningTrace.model_validate(bare).to_dict()


OPTIONALS = [
    ("source_skill",), ("metadata", "agent_id"), ("metadata", "framework"), ("metadata", "validated_by"),
    ("task", "input_schema"), ("steps", 0, "content"), ("steps", 1, "tool"), ("steps", 1, "tool", "mcp_server"),
    ("steps", 1, "input"), ("steps", 2, "output_summary"), ("steps", 1, "latency_ms"), ("knowledge_graph_delta",), ("grace",),
]  # fmt: skip


@pytest.mark.parametrize("path", OPTIONALS, ids=spelled)
def test_null_for_an_optional_is_its_absence(path):
    """It is taken, as other tools write it so, and left out when the document is written again."""
    nulled = changed(FULL, path, None)
    assert changed(FULL, path, ...) == ReasoningTrace.model_validate(nulled).to_dict()


def test_null_under_an_unknown_key_is_kept():
    """Only the schema's own optionals are known to mean nothing by it."""
    document = {**LEAST, "unknown": None}
    assert document == ReasoningTrace.model_validate(document).to_dict()


@pytest.mark.parametrize(
    "key",
    [
        "context",
        "type_",
        "to_dict",
        "model_fields",
        "_keys",
        "__dict__",
        "__class__",
        "model_config",
        "self",
        "",
        "a.b",
    ],
)
def test_unknown_keys_may_be_called_anything(key):
    """Also what Python or this library uses itself; they are data, and nothing else changes."""
    for path in ([key], ["metadata", key], ["steps", 0, key], ["outcome", key]):
        document = changed(FULL, path, {"x": 1})
        trace = ReasoningTrace.model_validate(document)
        assert document == trace.to_dict()
        assert FULL["@type"] == trace.type_


def test_parts_have_names():
    """Attributes are the schema's field names; enumerations compare as their words."""
    trace = ReasoningTrace.model_validate(FULL)
    assert ("tool_call", "search", {"q": "x", "n": 1, "f": 1.0, "deep": {"null": None}}) == (
        trace.steps[1].type, trace.steps[1].tool.name, trace.steps[1].input,
    )  # fmt: skip
    assert gk.ReasoningTrace is ReasoningTrace
    assert "network" == trace.metadata.visibility
    assert ["search"] == trace.tool_names
    assert (0.25, None) == (trace.outcome.confidence, trace.steps[0].tool)
    assert "ACME" == trace.knowledge_graph_delta.entities[0].name


def test_tool_names_are_distinct_and_in_order():
    """A tool that is used again is named once, where it first appears."""
    steps = [{"step_id": n, "type": "tool_call", "tool": {"name": name}} for n, name in enumerate("baab")]
    assert ["b", "a"] == ReasoningTrace.model_validate({**LEAST, "steps": steps}).tool_names


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_traces_can_be_copied_and_pickled(again):
    """A trace arrives in another process as it left."""
    trace = ReasoningTrace.model_validate(FULL)
    assert trace == again(trace)
    assert FULL == again(trace).to_dict()


def test_a_trace_is_taken_for_a_trace():
    """Whoever has one already need not write it first."""
    trace = ReasoningTrace.model_validate(FULL)
    assert trace == ReasoningTrace.model_validate(trace)


# Rules

PRIVATE = "'aggregated', 'federated' or 'private'"
BROKEN = [
    (["@context"], "https://example.com", "must be 'https://openknowledgepulse.org/schema/v1'"),
    (["@type"], "Trace", "must be 'ReasoningTrace'"),
    (["@type"], None, "must be 'ReasoningTrace'"),
    (["id"], "trace-1", "must begin with 'kp:trace:' (got 'trace-1')"),
    (["id"], 7, "must be a text (got 7)"),
    (["id"], ..., "is missing"),
    (["source_skill"], [], "must be a text (got a list of 0)"),
    (["metadata"], ..., "is missing"),
    (["metadata"], [], "must be an object (got a list of 0)"),
    (["metadata", "created_at"], ..., "is missing"),
    (["metadata", "created_at"], "yesterday", "must be a UTC instant in ISO 8601 that ends in Z"),
    (["metadata", "created_at"], "2026-01-02T03:04:05+00:00", "ends in Z"),
    (["metadata", "created_at"], "2026-01-02T03:04:05", "ends in Z"),
    (["metadata", "created_at"], "2026-02-30T03:04:05Z", "must be an instant that exists"),
    (["metadata", "created_at"], "2026-01-02T25:04:05Z", "must be an instant that exists"),
    (["metadata", "created_at"], "２026-01-02T03:04:05Z", "must be a UTC instant"),
    (["metadata", "created_at"], 1767323045, "must be a text (got 1767323045)"),
    (["metadata", "agent_id"], 1, "must be a text"),
    (["metadata", "framework"], 1, "must be a text"),
    (["metadata", "task_domain"], "", "must not be empty"),
    (["metadata", "task_domain"], None, "must be a text (got None)"),
    (["metadata", "success"], 1, "must be true or false (got 1)"),
    (["metadata", "success"], "true", "must be true or false (got 'true')"),
    (["metadata", "success"], ..., "is missing"),
    (["metadata", "quality_score"], 1.01, "must be a number from 0 to 1 (got 1.01)"),
    (["metadata", "quality_score"], -1, "must be a number from 0 to 1 (got -1)"),
    (["metadata", "quality_score"], math.nan, "must be a finite number (got nan)"),
    (["metadata", "quality_score"], None, "must be a number from 0 to 1 (got None)"),
    (["metadata", "visibility"], "public", "must be 'private', 'org' or 'network' (got 'public')"),
    (["metadata", "visibility"], "PRIVATE", "must be 'private', 'org' or 'network'"),
    (["metadata", "privacy_level"], "open", f"must be {PRIVATE} (got 'open')"),
    (["metadata", "privacy_level"], 0, f"must be {PRIVATE} (got 0)"),
    (["metadata", "validated_by"], 1, "must be a list of texts (got 1)"),
    (["metadata", "validated_by"], ["ana", 1], "must be a list of texts (got a list of 2)"),
    (["task"], "do it", "must be an object (got 'do it')"),
    (["task", "objective"], "", "must not be empty"),
    (["task", "objective"], ..., "is missing"),
    (["task", "input_schema"], [], "must be an object"),
    (["steps"], [], "must have at least one item (got a list of 0)"),
    (["steps"], {}, "must be a list (got an object of 0)"),
    (["steps"], ..., "is missing"),
    (["steps", 3], None, "must be an object (got None)"),
    (["steps", 2, "step_id"], -1, "must be at least 0 (got -1)"),
    (["steps", 2, "step_id"], 2.5, "must be a whole number"),
    (["steps", 2, "step_id"], "2", "must be a whole number (got '2')"),
    (["steps", 2, "step_id"], True, "must be a whole number (got True)"),
    (["steps", 2, "type"], "think", "must be 'thought', 'tool_call', 'observation' or 'error_recovery' (got 'think')"),
    (["steps", 2, "type"], ..., "is missing"),
    (["steps", 2, "content"], {}, "must be a text (got an object of 0)"),
    (["steps", 1, "tool"], "search", "must be an object (got 'search')"),
    (["steps", 1, "tool", "name"], ..., "is missing"),
    (["steps", 1, "tool", "mcp_server"], 1, "must be a text"),
    (["steps", 1, "input"], "q=x", "must be an object (got 'q=x')"),
    (["steps", 1, "input"], [1], "must be an object (got a list of 1)"),
    (["steps", 2, "output_summary"], 3, "must be a text"),
    (["steps", 2, "latency_ms"], -0.1, "must be a number of at least 0 (got -0.1)"),
    (["steps", 2, "latency_ms"], "12", "must be a number of at least 0 (got '12')"),
    (["steps", 2, "latency_ms"], True, "must be a number of at least 0 (got True)"),
    (["steps", 2, "latency_ms"], math.inf, "must be a finite number (got inf)"),
    (["outcome"], ..., "is missing"),
    (["outcome", "result_summary"], None, "must be a text (got None)"),
    (["outcome", "confidence"], 2, "must be a number from 0 to 1 (got 2)"),
    (["outcome", "confidence"], False, "must be a number from 0 to 1 (got False)"),
    (["outcome", "confidence"], "0.5", "must be a number from 0 to 1 (got '0.5')"),
    (["outcome", "confidence"], ..., "is missing"),
    (["knowledge_graph_delta"], [], "must be an object"),
    (["knowledge_graph_delta", "entities"], ..., "is missing"),
    (["knowledge_graph_delta", "entities", 0, "type"], ..., "is missing"),
    (["knowledge_graph_delta", "relationships", 0, "fact"], 1, "must be a text"),
    (["knowledge_graph_delta", "relationships", 0, "valid_from"], ..., "is missing"),
    (["grace"], "x", "must be an object (got 'x')"),
    (["grace", "calls", 0, "latency_ms"], -math.inf, "must be a finite number (got -inf)"),
    (["grace", "status"], object(), "must be a JSON value (got one of type object)"),
    (["steps", 1, "input", "q"], {1, 2}, "must be a JSON value (got one of type set)"),
    (["steps", 1, "input", "q"], (1, 2), "must be a JSON value (got one of type tuple)"),
    (["steps", 1, "input", "q"], b"x", "must be a JSON value (got one of type bytes)"),
    (["steps", 1, "input", "q"], {1: 2}, "has a key that is not a text: 1"),
    (["unknown", "a", "b", 0], {"x": math.nan}, "must be a finite number"),
    (["unknown", "a"], 10**5_000, "must be a number that can be written out"),
]


@pytest.mark.parametrize(
    ("path", "value", "said"), BROKEN, ids=[f"{spelled(p)}={v!r:.20}" for p, v, _ in BROKEN[:-1]] + ["huge"]
)
def test_each_broken_rule_names_its_field(path, value, said):
    """One line: the path, what must hold, and the value seen."""
    error = refusal(changed(FULL, path, value))
    message = str(error)
    assert said in message
    assert message.startswith(spelled(path))
    assert 1 == len(message.splitlines())
    assert error.path.startswith(spelled(path))
    assert f"{error.path}: {error.problem}" == message


@pytest.mark.parametrize("value", [None, [], "x", 3, object(), {1: 2}, [FULL]])
def test_what_is_no_document_is_refused(value):
    """The whole is meant, so there is no path."""
    assert "" == refusal(value).path


def test_more_problems_are_counted():
    """The first is told, and how many more there are to find."""
    broken = changed(changed(FULL, ["id"], 1), ["outcome"], ...)
    assert "id: must be a text (got 1); 1 more field is wrong" == str(refusal(broken))
    assert "; 2 more fields are wrong" in str(refusal(changed(broken, ["task"], ...)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"), ("{", "is not JSON"), (b"\xff", "is not JSON"), ('{"id": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "is not JSON"), ("[]", "a ReasoningTrace must be an object"), ("null", "must be an object"),
        ('{"grace": {"x": 1e999}}', "grace.x: must be a finite number (got inf)"), (3, "is not JSON"),
    ],
)  # fmt: skip
def test_broken_json_text_is_refused(text, said):
    """As clearly as a broken document, and with the same error."""
    with pytest.raises(gk.InvalidTrace, match=r"\A[^\n]+\Z") as raised:
        ReasoningTrace.model_validate_json(text)
    assert said in str(raised.value)


def test_nesting_has_an_end():
    """200 levels are read and written back; beyond that, and round in circles, is refused before it overruns a stack."""

    def nested(levels):
        inner = "end"
        for _ in range(levels):
            inner = [inner]
        return {**LEAST, "unknown": inner}

    assert nested(199) == ReasoningTrace.model_validate_json(json.dumps(nested(199))).to_dict()
    assert "nested more than 200 levels deep" in str(refusal(nested(201)))
    circle = {}
    circle["self"] = circle
    assert "unknown.self.self" in str(refusal({**LEAST, "unknown": circle}))


def test_a_trace_that_was_spoilt_afterwards_is_not_written():
    """Attributes can be set to anything; JSON text that nobody can read does not come out of it."""
    trace = ReasoningTrace.model_validate(FULL)
    trace.outcome.confidence = math.nan
    with pytest.raises(gk.InvalidTrace, match=r"outcome\.confidence: must be a finite number"):
        trace.to_json()


@pytest.mark.parametrize(
    "part", [Entity, KnowledgeGraphDelta, Metadata, Outcome, Relationship, Step, Task, ToolRef, ReasoningTrace]
)
def test_parts_are_read_by_the_same_rules(part):
    """A part alone gives the same error, with the path from where it begins."""
    with pytest.raises(gk.InvalidTrace, match="is missing"):
        part.model_validate({})
    with pytest.raises(gk.InvalidTrace, match=rf"^a {part.__name__} must be an object \(got 3\)$"):
        part.model_validate(3)


# Any document

NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)
UNIT = st.sampled_from([0, 1]) | st.floats(0, 1)
NAME = st.text(min_size=1)
INSTANTS = st.datetimes().map(lambda t: t.strftime("%Y").zfill(4) + t.strftime("-%m-%dT%H:%M:%S.%fZ"))


def part(required, optional=None):
    """An object with these fields, and any others."""
    taken = {*required, *(optional or {})}
    others = st.dictionaries(st.text().filter(lambda key: key not in taken), JSON, max_size=2)
    return st.builds(lambda known, more: {**known, **more}, st.fixed_dictionaries(required, optional=optional), others)


STEPS = part(
    {
        "step_id": st.integers(0, 10**6),
        "type": st.sampled_from(["thought", "tool_call", "observation", "error_recovery"]),
    },
    {
        "content": st.text(),
        "tool": part({"name": NAME}, {"mcp_server": st.text()}),
        "input": OBJECTS,
        "output_summary": st.text(),
        "latency_ms": st.integers(0, 10**9) | st.floats(0, 1e12),
    },
)
DOCUMENTS = part(
    {
        "@context": st.just(FULL["@context"]),
        "@type": st.just("ReasoningTrace"),
        "id": st.uuids().map("kp:trace:{}".format),
        "metadata": part(
            {
                "created_at": INSTANTS,
                "task_domain": NAME,
                "success": st.booleans(),
                "quality_score": UNIT,
                "visibility": st.sampled_from(["private", "org", "network"]),
                "privacy_level": st.sampled_from(["aggregated", "federated", "private"]),
            },
            {
                "agent_id": st.integers().map("kp:agent:{}".format),
                "framework": st.text(),
                "validated_by": st.lists(st.text(), max_size=2),
            },
        ),
        "task": part({"objective": NAME}, {"input_schema": OBJECTS}),
        "steps": st.lists(STEPS, min_size=1, max_size=4),
        "outcome": part({"result_summary": st.text(), "confidence": UNIT}),
    },
    {
        "source_skill": st.text(),
        "knowledge_graph_delta": part(
            {
                "entities": st.lists(part({"name": st.text(), "type": st.text()}), max_size=2),
                "relationships": st.lists(part({"fact": st.text(), "valid_from": st.text()}), max_size=2),
            }
        ),
        "grace": OBJECTS,
    },
)


@given(DOCUMENTS)
def test_any_valid_document_reads_back_to_the_letter(document):
    """As dicts and as JSON text, with 1 and 1.0 told apart."""
    trace = ReasoningTrace.model_validate(document)
    assert document == trace.to_dict()
    assert text_of(document) == text_of(trace.to_dict())
    assert trace == ReasoningTrace.model_validate_json(trace.to_json().encode())
    assert text_of(document) == text_of(json.loads(trace.to_json()))


@given(DOCUMENTS, st.sampled_from(BROKEN))
def test_a_document_with_one_broken_place_names_it(document, broken):
    """Whatever else is in the document."""
    path, value, said = broken
    try:
        document = changed(document, path, value)
    except (KeyError, IndexError, TypeError):
        assume(False)  # this document has no such place
    error = refusal(document)
    assert said in str(error)
    assert error.path.startswith(spelled(path))


PLACES = [path for path, _, _ in BROKEN]


@given(DOCUMENTS, st.sampled_from(PLACES), JSON)
def test_any_change_is_read_back_or_refused(document, path, value):
    """There is no third way: nothing else is raised, nothing is quietly changed but a null that means absence."""
    try:
        document = changed(document, path, value)
    except (KeyError, IndexError, TypeError):
        assume(False)
    try:
        trace = ReasoningTrace.model_validate(document)
    except gk.InvalidTrace as error:
        message = str(error)
    else:
        expected = document if value is not None else trace.to_dict()
        message = ""
        assert text_of(expected) == text_of(trace.to_dict())
    assert "\n" not in message


@given(JSON)
def test_any_json_value_is_read_or_refused(value):
    """Nothing but InvalidTrace comes out."""
    assert "" == refusal(value).path or isinstance(value, dict)


@pytest.mark.parametrize(
    ("location", "text"),
    [((), ""), (("steps", 2, "tool"), "steps[2].tool"), ((0, "a"), "[0].a"), (("x" * 80,), "x" * 57 + "...")],
)
def test_locations_are_paths(location, text):
    """Long names are shortened."""
    assert text == location_text(location)
