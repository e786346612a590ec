"""The JSON contract: documents read back to the letter, each broken rule names its field, and the model takes what the public schema takes."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from calendar import monthrange

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.runtime._pipeline import record_of
from grace_kp.store import open_store
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


@pytest.mark.parametrize("key", ["context", "type_", "to_dict", "_keys", "__dict__", "model_config", "self", "", "a.b"])
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


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_traces_can_be_copied_and_pickled(again):
    """A trace arrives in another process as it left."""
    trace = ReasoningTrace.model_validate(FULL)
    assert trace == again(trace)
    assert FULL == again(trace).to_dict()


PRIVATE = "'aggregated', 'federated' or 'private'"
BROKEN = [
    (["@context"], "https://example.com", "must be 'https://openknowledgepulse.org/schema/v1'"),
    (["@type"], "Trace", "must be 'ReasoningTrace'"),
    (["id"], "trace-1", "must begin with 'kp:trace:' (got 'trace-1')"),
    (["id"], ..., "is missing"),
    (["metadata"], [], "must be an object (got a list of 0)"),
    (["metadata", "created_at"], "yesterday", "must be a UTC instant in ISO 8601 that ends in Z"),
    (["metadata", "created_at"], "2026-02-30T03:04:05Z", "must be an instant that exists"),
    (["metadata", "created_at"], "２026-01-02T03:04:05Z", "must be a UTC instant"),
    (["metadata", "task_domain"], "", "must not be empty"),
    (["metadata", "success"], 1, "must be true or false (got 1)"),
    (["metadata", "quality_score"], 1.01, "must be a number from 0 to 1 (got 1.01)"),
    (["metadata", "quality_score"], math.nan, "must be a finite number (got nan)"),
    (["metadata", "visibility"], "public", "must be 'private', 'org' or 'network' (got 'public')"),
    (["metadata", "privacy_level"], "open", f"must be {PRIVATE} (got 'open')"),
    (["metadata", "validated_by"], ["ana", 1], "must be a list of strings (got a list of 2)"),
    (["task", "objective"], "", "must not be empty"),
    (["steps"], [], "must have at least one item (got a list of 0)"),
    (["steps"], {}, "must be a list (got an object of 0)"),
    (["steps", 2, "step_id"], -1, "must be at least 0 (got -1)"),
    (["steps", 2, "step_id"], 2.5, "must be a whole number"),
    (["steps", 2, "type"], "think", "must be 'thought', 'tool_call', 'observation' or 'error_recovery' (got 'think')"),
    (["steps", 1, "tool", "name"], ..., "is missing"),
    (["steps", 1, "input"], [1], "must be an object (got a list of 1)"),
    (["steps", 2, "latency_ms"], -0.1, "must be a number of at least 0 (got -0.1)"),
    (["steps", 2, "latency_ms"], math.inf, "must be a finite number (got inf)"),
    (["outcome", "confidence"], 2, "must be a number from 0 to 1 (got 2)"),
    (["knowledge_graph_delta", "relationships", 0, "fact"], 1, "must be a string"),
    (["grace"], "x", "must be an object (got 'x')"),
    (["grace", "status"], object(), "must be a JSON value (got one of type object)"),
    (["steps", 1, "input", "q"], {1, 2}, "must be a JSON value (got one of type set)"),
    (["steps", 1, "input", "q"], {1: 2}, "has a key that is not a string: 1"),
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
    assert "id: must be a string (got 1); 1 more field is wrong" == str(refusal(broken))
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


# The schema, written down from the description of the trace. Each rule says whether a value conforms.

INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?Z", re.ASCII)


def text(value):
    return isinstance(value, str)


def non_empty(value):
    return text(value) and value != ""


def prefixed(prefix):
    return lambda value: text(value) and value.startswith(prefix)


def instant(value):
    found = INSTANT.fullmatch(value) if text(value) else None
    if found is None:
        return False
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def number(low, high=float("inf")):
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def whole(value):
    return number(0)(value) and value == int(value)


def boolean(value):
    return isinstance(value, bool)


def one_of(*words):
    return lambda value: text(value) and value in words


def listed(rule, least=0):
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(rule, value))


def record(value):
    return isinstance(value, dict)


def shape(required, optional):
    def check(value):
        return (
            isinstance(value, dict)
            and all(name in value and rule(value[name]) for name, rule in required.items())
            and all(rule(value[name]) for name, rule in optional.items() if name in value)
        )

    return check


TOOL = shape({"name": text}, {"mcp_server": text})
STEP = shape(
    {"step_id": whole, "type": one_of("thought", "tool_call", "observation", "error_recovery")},
    {"content": text, "tool": TOOL, "input": record, "output_summary": text, "latency_ms": number(0)},
)
METADATA = shape(
    {
        "created_at": instant, "task_domain": non_empty, "success": boolean, "quality_score": number(0, 1),
        "visibility": one_of("private", "org", "network"), "privacy_level": one_of("aggregated", "federated", "private"),
    },
    {"agent_id": text, "framework": text, "validated_by": listed(text)},
)  # fmt: skip
DELTA = shape(
    {
        "entities": listed(shape({"name": text, "type": text}, {})),
        "relationships": listed(shape({"fact": text, "valid_from": text}, {})),
    },
    {},
)
conforms = shape(
    {
        "@context": one_of("https://openknowledgepulse.org/schema/v1"), "@type": one_of("ReasoningTrace"), "id": prefixed("kp:trace:"),
        "metadata": METADATA, "task": shape({"objective": non_empty}, {"input_schema": record}), "steps": listed(STEP, least=1),
        "outcome": shape({"result_summary": text, "confidence": number(0, 1)}, {}),
    },
    {"source_skill": text, "knowledge_graph_delta": DELTA, "grace": record},
)  # fmt: skip


def places(value, path=()):
    """Every place in a document below its root."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in parts:
        yield (*path, key)
        yield from places(item, (*path, key))


def taken(document):
    try:
        gk.ReasoningTrace.model_validate(copy.deepcopy(document))
    except gk.InvalidTrace:
        return False
    return True


ODD = [
    "", "x", 0, 1, -1, 0.0, 1.0, 1.5, -0.0, -0.5, 10**30, 1e300, True, False, [], {}, [""], ["a", "b"], [1], {"a": 1}, "kp:trace:", "kp:agent:",
    "kp:trace", "network", "thought", "Thought", "2026-01-02T03:04Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789012Z",
    "2026-01-02T03:04:05.Z", "2026-01-02T24:00:00Z", "2026-01-02T24:00Z", "2026-02-29T00:00Z", "2024-02-29T00:00:00.5Z", "2026-13-01T00:00:00Z",
    "2026-01-02T03:60Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05z", "2026-01-02 03:04:05Z", "2026-01-02",
    "2026-01-02T03:04:05.000Z\n", "0000-02-29T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9Z", "２０２６-01-02T03:04:05Z",
]  # fmt: skip
PLACES = list(places(FULL))
READ_MORE_LENIENTLY = {
    ("metadata", "validated_by"): str,  # one name; it is written as a list
}


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_reading_takes_exactly_what_the_schema_takes(path):
    """Every field with every odd value; null counts as absence, and a lone name as a list of one."""
    for value in ODD:
        document = changed(FULL, path, value)
        lenient = isinstance(value, READ_MORE_LENIENTLY.get(path, ()))
        assert (conforms(document) or lenient) == taken(document), value


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_a_field_is_required_where_the_schema_requires_it(path):
    """Except those with a default, which are written."""
    document = changed(FULL, path, ...)
    defaults = {
        ("@context",),
        ("@type",),
        *(("metadata", key) for key in ("quality_score", "visibility", "privacy_level")),
    }
    assert (conforms(document) or path in defaults) == taken(document)
    if taken(document):
        assert conforms(gk.ReasoningTrace.model_validate(document).to_dict())


VALUES = st.sampled_from(ODD) | st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
INSTANTS = st.from_regex(re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,14})?)?Z", re.ASCII), fullmatch=True)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), max_size=3))
def test_what_is_read_is_written_in_conformity_and_to_the_letter(changes):
    """A document that conforms comes back as it was, as a dict and as JSON text; one that does not is never written as it was."""
    document = FULL
    for path, value in changes:
        try:
            document = changed(document, path, value)
        except (KeyError, TypeError, IndexError):
            return
    if not taken(document):
        assert not conforms(document)
        return
    trace = gk.ReasoningTrace.model_validate(copy.deepcopy(document))
    assert conforms(trace.to_dict())
    if conforms(document):
        assert json.dumps(document) == json.dumps(trace.to_dict())
        assert json.dumps(document) == json.dumps(gk.ReasoningTrace.model_validate_json(json.dumps(document)).to_dict())
        assert document == json.loads(trace.to_json())


@given(INSTANTS)
def test_instants_are_those_of_the_schema(created_at):
    """Any digits in its form; they are kept as they are, also by a store."""
    document = changed(FULL, ("metadata", "created_at"), created_at)
    assert conforms(document) == taken(document)
    if taken(document):
        store = open_store("memory:")
        store.put([record_of(document)])
        assert created_at == store.query()[0].metadata.created_at


def test_instants_of_different_precision_are_found_in_their_order():
    """To the minute, to the second, to the nanosecond and beyond."""
    store = open_store("memory:")
    for n, created_at in enumerate(
        ["2026-01-01T00:00Z", "2026-01-01T00:00:30.0000000001Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02Z"]
    ):
        store.put([record_of({**changed(FULL, ("metadata", "created_at"), created_at), "id": f"kp:trace:{n}"})])
    assert ["kp:trace:3", "kp:trace:2", "kp:trace:1", "kp:trace:0"] == [trace.id for trace in store.query()]
    assert 1 == store.count(until="2026-01-01T00:00:10Z")


def test_a_lone_name_is_written_as_a_list():
    """Earlier versions took it, and exported it as it was."""
    trace = gk.ReasoningTrace.model_validate(changed(FULL, ("metadata", "validated_by"), "ana"))
    assert ["ana"] == trace.metadata.validated_by == trace.to_dict()["metadata"]["validated_by"]


def test_a_trace_at_the_edges_of_the_schema_can_be_used():
    """An empty tool name, a bare id, a step number with a fraction of zero: scored, stored and found."""
    document = changed(changed(FULL, ("steps", 1, "tool", "name"), ""), ("steps", 1, "step_id"), 1.0)
    document = {**document, "id": "kp:trace:"}
    trace = gk.ReasoningTrace.model_validate(document)
    assert 0 <= gk.evaluate_value(trace) <= 1
    assert ([""], "1.0") == (trace.tool_names, json.dumps(trace.to_dict()["steps"][1]["step_id"]))
    store = open_store("memory:")
    store.put([record_of(document)])
    assert document == store.get("kp:trace:").to_dict()
