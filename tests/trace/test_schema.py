"""The public schema against the model, in both directions: what the one takes the other takes, and what is written conforms."""

from __future__ import annotations

import copy
import json
import re
from calendar import monthrange

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.runtime._pipeline import record_of
from grace_kp.store import open_store

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

FULL = {
    "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": "kp:trace:1", "source_skill": "s",
    "metadata": {
        "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:a", "framework": "f", "task_domain": "d", "success": True,
        "quality_score": 1, "visibility": "network", "privacy_level": "aggregated", "validated_by": ["ana"],
    },
    "task": {"objective": "o", "input_schema": {}},
    "steps": [
        {"step_id": 0, "type": "thought", "content": "c"},
        {"step_id": 1, "type": "tool_call", "tool": {"name": "t", "mcp_server": "m"}, "input": {"a": 1}, "output_summary": "x", "latency_ms": 1.5},
    ],
    "outcome": {"result_summary": "r", "confidence": 0.5},
    "knowledge_graph_delta": {"entities": [{"name": "n", "type": "t"}], "relationships": [{"fact": "f", "valid_from": "v"}]},
    "grace": {"status": "completed"},
}  # fmt: skip


def places(value, path=()):
    """Every place in a document below its root."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in parts:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(document, path, value):
    made = copy.deepcopy(document)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def without(document, path):
    made = copy.deepcopy(document)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return made


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
    document = without(FULL, path)
    defaults = {
        ("@context",),
        ("@type",),
        ("metadata", "quality_score"),
        ("metadata", "visibility"),
        ("metadata", "privacy_level"),
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
