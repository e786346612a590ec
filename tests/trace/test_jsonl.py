"""Files of traces: what is read within a memory limit, each problem with its place, and writing that is all or nothing."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import InvalidRecord, ReasoningTrace, read_traces, write_traces
from grace_kp.trace import object_without_duplicates
from grace_kp.trace._json_text import TooLong, lines_of
from tests.exhaustive import exhaustive

DATA = Path(os.environ.get("GRACE_KP_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="needs the recorded runs; GRACE_KP_DATA names the folder that holds them"
)


def native(number=0, **metadata):
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number}",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "task_domain": "default", "success": True, "quality_score": 0.5,
            "visibility": "private", "privacy_level": "private", **metadata,
        },
        "task": {"objective": f"count to {number}"},
        "steps": [{"step_id": 0, "type": "thought", "content": "one\u2028two ✓"}],
        "outcome": {"result_summary": "done", "confidence": 0.5},
    }  # fmt: skip


def chat(number=0, **beside):
    return {"messages": [{"role": "user", "content": f"q{number}"}, {"role": "assistant", "content": "a"}], **beside}


def lines(*documents):
    return "".join(f"{json.dumps(document)}\n" for document in documents)


def read(text):
    return list(read_traces(io.BytesIO(text if isinstance(text, bytes) else text.encode()), name="f"))


def listed(folder):
    return [path.name for path in folder.iterdir()]


def told(items):
    """Objectives of what was read, and the messages about what was not, in order."""
    return [str(item) if isinstance(item, InvalidRecord) else item.task.objective for item in items]


class TestForms:
    @pytest.mark.parametrize(
        "text",
        [
            lines(native(1), chat(2)),
            lines(native(1), chat(2)).replace("\n", "\r\n"),
            "\n \n" + lines(native(1)) + "\r\n\n" + lines(chat(2)) + "\n\n",
            "\ufeff" + lines(native(1), chat(2)),
            lines(native(1), chat(2)).rstrip("\n"),
            json.dumps([native(1), chat(2)]),
            json.dumps([native(1), chat(2)], indent=2),
            json.dumps([native(1), chat(2)], indent=0),
            "[\n" + ",\n".join(json.dumps(each) for each in (native(1), chat(2))) + "\n]\n",
            json.dumps(native(1), indent=2) + "\n" + json.dumps(chat(2), indent=2),
            json.dumps(native(1), indent=2) + json.dumps(chat(2)),
            json.dumps({"info": {}, "simulations": [native(1), chat(2)]}, indent=1),
            json.dumps({"results": [native(1), {"row_idx": 0, "row": chat(2)}]}),
        ],
    )
    @pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
    def test_lines_documents_and_lists_read_alike(self, text, pack):
        """Compact or over many lines, with or without a byte order mark, blank lines and compression."""
        assert ["count to 1", "q2"] == told(read(pack(text.encode())))

    def test_a_list_of_messages_is_one_run(self):
        """And a list of such lists as many runs."""
        messages = chat(1)["messages"]
        assert ["q1"] == told(read(json.dumps(messages)))
        assert ["q1"] == told(read(json.dumps(messages, indent=1)))
        assert ["q1", "q1"] == told(read(json.dumps([messages, messages], indent=1)))
        assert ["q1", "q1"] == told(read(lines(messages, messages)))

    @pytest.mark.parametrize("text", ["", "\n\n  \n", "\ufeff", "[]", "[\n]\n", gzip.compress(b"", mtime=0)])
    def test_an_empty_file_holds_nothing(self, text):
        """That is no error."""
        assert [] == read(text)

    @pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
    def test_what_is_written_reads_back_to_the_letter(self, tmp_path, name):
        """Line separators in texts included; compression follows the name."""
        traces = [ReasoningTrace.model_validate(native(n)) for n in range(3)]
        assert 3 == write_traces(tmp_path / name, iter(traces))
        assert traces == list(read_traces(tmp_path / name))
        assert traces == list(read_traces(str(tmp_path / name)))
        packed = (tmp_path / name).read_bytes()[:2] == b"\x1f\x8b"
        assert packed == name.endswith(".gz")

    def test_open_files_of_any_kind_are_read_and_stay_open(self, tmp_path):
        """Binary or text, packed or not, with or without a name."""
        plain, packed = tmp_path / "plain", tmp_path / "packed"
        plain.write_text(lines(native(1), chat(2)), "utf-8")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        with (
            plain.open("rb") as binary, plain.open(encoding="utf-8") as text, packed.open("rb") as zipped,
            plain.open("rb", buffering=0) as raw, packed.open(encoding="utf-8") as zipped_text,
            gzip.open(packed, "rb") as unpacked, gzip.open(packed, "rt", encoding="utf-8") as unpacked_text,
        ):  # fmt: skip
            in_memory = io.StringIO(plain.read_text("utf-8"))
            for file in (binary, text, zipped, raw, zipped_text, unpacked, unpacked_text, in_memory):
                assert ["count to 1", "q2"] == told(read_traces(file))
                assert not file.closed

    def test_standard_input_is_a_dash(self, monkeypatch, capsys):
        """And standard output too."""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(lines(native(1), "x").encode()))))
        items = list(read_traces("-"))
        assert ["count to 1", "<stdin>:2: must be an object or a list of messages (got 'x')"] == told(items)
        assert 1 == write_traces("-", items[:1])
        assert native(1) == json.loads(capsys.readouterr().out)

    def test_lines_are_read_as_they_are_asked_for(self):
        file = io.StringIO(lines(*map(chat, range(100))))
        assert ["q0", "q1", "q2"] == told(itertools.islice(read_traces(file), 3))
        assert file.tell() < 500

    def test_the_time_of_the_file_stands_in_for_runs_that_say_none(self, tmp_path):
        """So that reading the same file twice gives the same traces; native traces and dated runs keep their own."""
        path = tmp_path / "f"
        path.write_text(lines(chat(), chat(created=1714557600), native(1)))
        os.utime(path, (1_000_000_000, 1_000_000_000))
        created = [item.metadata.created_at for item in read_traces(path)]
        assert ["2001-09-09T01:46:40.000Z", "2024-05-01T10:00:00.000Z", "2026-01-02T03:04:05.000Z"] == created
        assert list(read_traces(path)) == list(read_traces(path))

    def test_a_domain_is_for_runs_that_name_none(self):
        """Runs and traces that name theirs keep it."""
        text = lines(chat(), chat(domain="airline"), native(1))
        domains = [item.metadata.task_domain for item in read_traces(io.StringIO(text), domain="code")]
        assert ["code", "airline", "default"] == domains


class TestBroken:
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ('{"messages": [', r"^f:2: is not JSON: .* \(column 15\)$"),
            ("nonsense", r"^f:2: is not JSON: expecting value \(column 1\)$"),
            (json.dumps(chat()) + "}", r"^f:2: is not JSON: extra data"),
            ('{"a": NaN}', r"^f:2: is not JSON that can be read: NaN is not a JSON number$"),
            ('{"a": -Infinity}', r"^f:2: .*-Infinity is not a JSON number$"),
            ('{"a": ' + "9" * 5_000 + "}", r"^f:2: .*a number has too many digits$"),
            ('{"a": ' * 100_000, r"^f:2: is nested too deeply to be read$"),
            ("[" * 100_000 + "]" * 100_000, r"^f:2: is nested too deeply to be read$"),
            ("5", r"^f:2: must be an object or a list of messages \(got 5\)$"),
            ('{"messages": [{"role": "user", "content": "q"}, 5]}', r"^f:2: messages\[1\]: must be an object \(got 5\)$"),
            ("{}", r"^f:2: is neither a ReasoningTrace nor a run"),
            (json.dumps(native(1, success="yes")), r"^f:2: metadata\.success: must be true or false \(got 'yes'\)$"),
            (json.dumps(native(1)).replace('"confidence": 0.5', '"confidence": 1e999'), r"^f:2: outcome\.confidence: "),
            ('{"@type": "Person"}', r"^f:2: @type: "),
            ('{"metadata": 1, "steps": 2}', r"^f:2: \w+.*: "),
            ('[{"messages": 5}]', r"^f:2: \[0\]\.messages: must be a list of messages"),
        ],
    )  # fmt: skip
    def test_a_broken_line_is_told_with_its_place_and_the_rest_is_read(self, line, message):
        """One error for the line, one line of text for the error."""
        first, broken, last = read(lines(chat(1)) + line + "\n" + lines(chat(3)))
        assert ["q1", "q3"] == [first.task.objective, last.task.objective]
        assert isinstance(broken, InvalidRecord)
        with pytest.raises(InvalidRecord, match=message):
            raise broken
        assert ("f", 2) == (broken.file, broken.line)
        assert "\n" not in str(broken)

    @pytest.mark.parametrize("first", ["nonsense", '{"a": "cut off', '{"messages": [', '{"a": 1,', "{}", "NaN", "[1,"])
    def test_a_broken_first_line_does_not_hide_the_rest(self, first):
        """Also when it looks like the beginning of a document over many lines."""
        items = read(first + "\n" + lines(chat(2), chat(3)))
        assert ["q2", "q3"] == told(items)[1:]
        assert 1 == items[0].line

    @pytest.mark.parametrize(
        ("data", "items"),
        [
            (lines(chat(1)).encode() + b'{"a": "\xff"}\n' + lines(chat(3)).encode(), ["q1", "f:2: is not UTF-8: byte 8 is 0xff", "q3"]),
            (lines(chat(1)).encode("utf-16"), ["f:1: is UTF-16; only UTF-8 can be read"]),
            (b"PK\x03\x04\n\xff\n\xfe\n", ["f:1: is a zip archive, such as an Inspect log (.eval), which cannot be read"]),
        ],
        ids=["other bytes", "UTF-16", "archive"],
    )  # fmt: skip
    def test_bytes_in_another_encoding_are_named(self, data, items):
        """With the line; a single broken line does not hide the rest."""
        assert items == told(read(data))

    def test_a_text_file_in_another_encoding_is_read_as_it_was_opened(self, tmp_path):
        """Who opened it knew its encoding."""
        path = tmp_path / "f"
        path.write_text(lines(chat(1)), "utf-16")
        with path.open(encoding="utf-16") as file:
            assert ["q1"] == told(read_traces(file))

    @pytest.mark.parametrize("cut", [1, 8, 12, 40])
    def test_a_truncated_gzip_gives_what_came_before(self, cut):
        """And one error at the end."""
        packed = gzip.compress(b"".join(lines(chat(n), native(n)).encode() for n in range(600)))
        *whole, last = read(packed[:-cut])
        assert "the compressed file ends too early" == last.problem
        assert len(whole) > 1_000
        assert not any(isinstance(item, InvalidRecord) for item in whole)

    @pytest.mark.parametrize("damaged", [b"\x1f\x8b", b"\x1f\x8bnonsense", gzip.compress(b"{}", mtime=0)[:11]])
    def test_a_gzip_of_nothing_is_one_error(self, damaged):
        """However early it breaks off."""
        assert [InvalidRecord] == [type(item) for item in read(damaged)]

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("a", "there is no such file"),
            ("", "is a folder, not a file"),
            ("\0", "null"),
            ("file/below", "Not a directory"),
        ],
    )
    def test_a_file_that_cannot_be_opened_is_an_error_at_once(self, tmp_path, name, problem):
        """Before anything is asked of it, in one line that names it."""
        (tmp_path / "file").write_text("")
        path = str(tmp_path / name) if name else str(tmp_path)
        with pytest.raises(InvalidRecord) as caught:
            read_traces(path)
        assert path in str(caught.value)
        assert problem in str(caught.value)
        assert "\n" not in str(caught.value)
        assert (path, 0) == (caught.value.file, caught.value.line)

    @pytest.mark.parametrize("source", [None, 5, b"x", [], {}])
    def test_a_source_is_a_path_or_a_file(self, source):
        """Anything else is a slip in the program."""
        with pytest.raises(TypeError, match=r"a source is a path, '-' or an open file \(got "):
            read_traces(source)

    def test_a_stream_that_fails_is_one_error(self):
        """What was read before is there."""

        class Failing(io.BytesIO):
            def read(self, size=-1):
                data = super().read(size)
                if not data:
                    raise OSError(5, "Input/output error")
                return data

        items = list(read_traces(Failing(lines(chat(1)).encode()), name="f"))
        assert ["q1", "f:2: cannot be read any further: cannot be read: Input/output error"] == told(items)


class TestDocuments:
    """One document over many lines."""

    def test_an_error_names_the_line_of_the_syntax(self):
        """As an editor counts them, blank lines included."""
        text = "\n\n" + json.dumps(native(1), indent=2).replace('"success": true', '"success": yes')
        line = text[: text.index("yes")].count("\n") + 1
        assert 10 == line
        assert [f"f:{line}: is not JSON: expecting value (column 16)"] == told(read(text))

    def test_an_item_of_a_list_is_named_by_its_index(self):
        """With the line on which it begins."""
        items = read(json.dumps([native(0), native(1), chat(2), native(3, success="yes")], indent=2))
        assert ["count to 0", "count to 1", "q2"] == told(items)[:3]
        assert "[3].metadata.success" == items[3].path
        line = json.dumps([native(0), native(1), chat(2)], indent=2).count("\n") + 1
        assert f"f:{line}: [3].metadata.success: must be true or false (got 'yes')" == str(items[3])

    def test_a_run_inside_a_bundle_is_named_by_its_path(self):
        """The key of the bundle and the index."""
        bundle = {"simulations": [chat(1), {"messages": []}]}
        assert ["q1", "f:1: simulations[1].messages: must have at least one message"] == told(read(json.dumps(bundle)))

    @pytest.mark.parametrize("indent", [None, 0, 2])
    def test_a_broken_item_of_a_list_does_not_hide_the_others(self, indent):
        """Reading goes on with the next item that begins on a line of its own."""
        items = [json.dumps(chat(n), indent=indent) for n in range(4)]
        items[1] = items[1].replace('"content": "q1"', '"content": q1')
        text = "[\n" + ",\n".join(items) + "\n]\n"
        heard = told(read(text))
        assert ["q0", "q2", "q3"] == [each for each in heard if not each.startswith("f:")]
        assert "is not JSON: expecting value" in heard[1]

    def test_a_forgotten_comma_is_told(self):
        """And both items are there."""
        text = "[\n" + json.dumps(chat(1)) + "\n" + json.dumps(chat(2)) + "\n]"
        assert ["q1", "f:3: is not JSON: expecting ',' or ']' after an item of the list", "q2"] == told(read(text))

    @pytest.mark.parametrize(
        ("bad", "problem"),
        [
            ("NaN", "NaN is not a JSON number"),
            ("-Infinity", "-Infinity is not a JSON number"),
            ("9" * 5_000, "a number has too many digits"),
        ],
    )
    def test_numbers_that_are_none_are_told_with_their_line(self, bad, problem):
        """The same word inside a text does not mislead."""
        text = json.dumps({**chat(1), "note": 'a NaN, "Infinity"', "score": "HERE"}, indent=1).replace('"HERE"', bad)
        line = text[: text.rindex(bad)].count("\n") + 1
        assert [f"f:{line}: is not JSON that can be read: {problem}"] == told(read(text))


class TestWriting:
    def test_nothing_is_half_written(self, tmp_path):
        """When a trace cannot be had, the file is as it was, and nothing else is left behind."""
        path = tmp_path / "f.jsonl"
        path.write_text("before")

        def failing():
            yield ReasoningTrace.model_validate(native(1))
            raise RuntimeError("no more")

        for target in (path, tmp_path / "new.jsonl.gz"):
            with pytest.raises(RuntimeError, match="no more"):
                write_traces(target, failing())
        assert (["f.jsonl"], "before") == (listed(tmp_path), path.read_text())

    def test_an_unreadable_record_is_not_written(self, tmp_path):
        """What `read_traces` could not read stops the writing instead of vanishing."""
        with pytest.raises(InvalidRecord, match=r"^f:2: "):
            write_traces(tmp_path / "f", read(lines(native(1)) + "nonsense"))
        assert [] == listed(tmp_path)

    def test_a_file_is_replaced_with_its_permissions_and_through_links(self, tmp_path):
        """The link stays a link, the file keeps its mode."""
        path, link = tmp_path / "f", tmp_path / "link"
        path.write_text("before")
        path.chmod(0o644)
        link.symlink_to(path)
        assert 1 == write_traces(link, [ReasoningTrace.model_validate(native(1))])
        assert link.is_symlink()
        assert (native(1), 0o644) == (json.loads(path.read_text("utf-8")), stat.S_IMODE(path.stat().st_mode))

    def test_a_device_is_written_to_and_not_replaced(self):
        """Such as the null device."""
        assert 1 == write_traces(os.devnull, [ReasoningTrace.model_validate(native(1))])
        assert not Path(os.devnull).is_file()


PIECES = st.sampled_from([
    json.dumps(chat(1)), json.dumps(native(2)), json.dumps([chat(3), native(4)]), json.dumps(chat(5), indent=1),
    json.dumps([chat(6), native(7, success=3)], indent=2), "[", "]", "{", "}", ",", '"', "NaN", "[\n{", "}\n]", "\r\n", "\0",
    "\n", "\n\n", " ", "9" * 4_400, '{"messages": [', "\ufeff", "[[", "null", "\u2028", "é",
])  # fmt: skip


class TestTotality:
    @given(st.lists(PIECES | st.text(max_size=4), max_size=12), st.booleans(), st.integers(0, 30))
    def test_any_file_is_read_to_its_end(self, pieces, packed, cut):
        """Only traces and records come out; every record names the file and, in order, a line that it has."""
        data = "".join(pieces).encode("utf-8", "replace")
        data = gzip.compress(data) if packed else data
        items = list(read_traces(io.BytesIO(data[: len(data) - cut] if cut else data), name="f"))
        count = "".join(pieces).count("\n") + 2
        for item in items:
            if isinstance(item, InvalidRecord):
                assert "f" == item.file
                assert 1 <= item.line <= count
                assert "\n" not in str(item)
            else:
                assert isinstance(item, ReasoningTrace)

    @given(st.data())
    def test_every_sound_line_is_read_whatever_stands_between(self, data):
        """One broken line costs one line."""
        broken = st.sampled_from(["nonsense", "{", '{"a":', '"', "NaN", "[1,", "]", "{}", '{"messages": [', '{"a": "'])
        kinds = data.draw(st.lists(st.booleans(), min_size=1, max_size=8))
        text = lines(chat(0))
        for number, sound in enumerate(kinds, 1):
            text += lines(chat(number)) if sound else data.draw(broken) + "\n"
        items = read(text)
        read_well = [0, *(number for number, sound in enumerate(kinds, 1) if sound)]
        assert [f"q{n}" for n in read_well] == [each for each in told(items) if not each.startswith("f:")]
        bad = [number + 1 for number, sound in enumerate(kinds, 1) if not sound]
        assert bad == [item.line for item in items if isinstance(item, InvalidRecord)]


class TestRecordedRuns:
    @needs_data
    @pytest.mark.parametrize(
        ("name", "figures"),
        [
            ("tau_bench_airline_gpt4o.jsonl.gz", {"runs": 124, "solved": 59, "calls": 656, "error": 36, "unfinished": 0}),
            pytest.param(
                "agent_runs.jsonl.gz",
                {"runs": 7_696, "solved": 2_831, "calls": 34_820, "error": 10_415, "unfinished": 3_802},
                marks=exhaustive,
            ),
        ],
    )  # fmt: skip
    def test_recorded_runs_are_read_without_an_error(self, name, figures):
        """Every run, every call, every error, and every result linked to its call."""
        found = dict.fromkeys(figures, 0)
        ids = set()
        for trace in read_traces(DATA / name):
            assert not isinstance(trace, InvalidRecord), trace
            ids.add(trace.id)
            found["runs"] += 1
            found["solved"] += trace.metadata.success
            found["calls"] += len(trace.grace["calls"])
            assert "unlinked_observations" not in trace.grace
            assert trace.grace["success_from"] in {"label", "reward"}
            for call in trace.grace["calls"]:
                if call["status"] in found:
                    found[call["status"]] += 1
        assert figures == found
        assert figures["runs"] == len(ids)


SPANS = {
    "Langfuse trace or observation export": [
        {"id": "o", "traceId": "t", "type": "GENERATION", "parentObservationId": None, "input": [{"role": "user", "content": "q"}], "output": {"role": "assistant", "content": "a"}},
        {"id": "t", "timestamp": "2026-10-01T10:00:00Z", "name": "agent", "input": "q", "output": "a", "sessionId": None, "userId": "ana", "totalCost": 0.1},
        {"id": "t", "timestamp": "2026-10-01T10:00:00Z", "input": "q", "output": "a", "observations": ["o"]},
        {"trace": {"id": "t", "input": "q", "output": "a"}, "observations": []},
    ],
    "LangSmith runs": [
        {"id": "r", "trace_id": "r", "parent_run_id": None, "run_type": "llm", "inputs": {"messages": [{"role": "user", "content": "q"}]}, "outputs": {"output": "a"}},
        {"id": "r", "run_type": "chain", "start_time": "2026-10-01T10:00:00", "inputs": {"input": "q"}, "outputs": {"output": "a"}, "child_runs": []},
        {"event": "on_tool_end", "run_id": "r", "parent_ids": [], "data": {"input": "q", "output": "a"}},
    ],
    "OTLP/JSON spans": [
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s"}]}]}]},
        {"resource_spans": [{"scope_spans": []}]},
        {"traceId": "t", "spanId": "s", "startTimeUnixNano": "1", "attributes": []},
    ],
    "OpenInference spans (Phoenix)": [
        {"name": "llm", "context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM", "parent_id": None, "attributes": {"input.value": "q", "output.value": "a"}},
        {"context.trace_id": "t", "context.span_id": "s", "parent_id": None, "attributes.openinference.span.kind": "LLM"},
        {"trace_id": "t", "span_id": "s", "attributes": {"openinference": {"span": {"kind": "LLM"}}}},
    ],
    "OpenTelemetry spans": [
        {"name": "s", "context": {"trace_id": "t", "span_id": "s"}, "parent_id": None, "start_time": "2026-10-01T10:00:00Z"},
        {"trace_id": "t", "span_id": "s", "parent_span_id": None, "attributes": {"gen_ai.input.messages": "[]"}},
    ],
    "MLflow traces": [{"info": {"trace_id": "t", "trace_location": {}}, "data": {"spans": []}}, {"info": {"request_id": "t", "experiment_id": "1"}, "data": {"request": "q", "response": "a"}}],
    "Braintrust logs": [{"id": "r", "span_id": "s", "root_span_id": "s", "span_parents": None, "input": "q", "output": "a"}],
    "Helicone requests": [{"request_body": {"messages": []}, "response_body": {}, "request_created_at": "2026-10-01T10:00:00Z"}],
    "W&B Weave calls": [{"id": "c", "trace_id": "t", "parent_id": None, "op_name": "weave:///x", "inputs": {"question": "q"}, "output": "a"}],
    "OpenAI agents SDK traces": [
        {"object": "trace.span", "id": "s", "trace_id": "t", "parent_id": None, "span_data": {"type": "agent"}},
        {"object": "trace", "id": "t", "workflow_name": "w", "group_id": None},
    ],
    "Inspect log": [{"version": 2, "eval": {}, "samples": [{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}]}],
    "Claude Code session": [{"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": "q"}}],
    "Zipkin or Jaeger spans": [{"traceId": "t", "id": "s", "localEndpoint": {}}, {"data": [{"traceID": "t", "spans": [{"traceID": "t", "spanID": "s", "references": []}]}]}],
    "a span format with the fields trace_id and parent_id": [
        {"trace_id": "t", "parent_id": None, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]},
        {"trace_id": "t", "parent_id": "p", "input": "q", "output": "a"},
    ],
    "a span format with the fields traceId and parentStepId": [{"traceId": "t", "parentStepId": "p"}],
    "a span format with the fields trace.id and parent.id": [{"trace": {"id": "t"}, "parent": {"id": "p"}}],
    "a span format with the fields trace_id and parent": [{"messages": [{"role": "user", "content": "q"}], "trace_id": "t", "parent": "p"}],
    "a span format with the fields operation_Id and operation_ParentId": [{"messages": [{"role": "user", "content": "q"}], "operation_Id": "t", "operation_ParentId": "p"}],
    "a span format with the fields TraceId and SpanId": [{"TraceId": "t", "SpanId": "s"}],
    "a span format with the fields parent_id and start_time": [{"id": "s", "parent_id": None, "start_time": 1, "input": "q", "output": "a"}],
    "a span format with the fields metadata.trace_id and metadata.parent_id": [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "metadata": {"trace_id": "t", "parent_id": "p"}},
    ],
}  # fmt: skip
FORMS = {
    "line": lambda span: json.dumps(span),
    "over lines": lambda span: json.dumps(span, indent=1),
    "list": lambda span: json.dumps([span, span]),
    "list over lines": lambda span: json.dumps([span], indent=1),
    "data": lambda span: json.dumps({"data": [span], "meta": {"page": 1}}),
    "runs": lambda span: json.dumps({"runs": [span]}),
    "deep": lambda span: json.dumps({"result": {"items": [{"value": [[span]]}]}}),
    "text": lambda span: json.dumps({"row": json.dumps(span)}),
    "below a chat": lambda span: json.dumps({**SPOKEN, "children": [span]}),
    "carriage returns": lambda span: "\ufeff" + json.dumps(span, indent=1).replace("\n", "\r\n"),
}
SPOKEN = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}


class TestSpans:
    """A span is a part of a run. Until its format has a reader, it is refused by the name of the format."""

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("name", SPANS)
    def test_spans_are_refused_by_the_name_of_their_format(self, name, form):
        """However they are wrapped, and whether or not the ids are null."""
        for span in SPANS[name]:
            [problem] = read_traces(io.BytesIO(FORMS[form](span).encode()), name="f")
            assert isinstance(problem, InvalidRecord)
            assert str(problem).startswith("f:")
            assert f"there is no reader for this format: {name};" in str(problem)

    def test_the_place_of_the_first_span_is_named(self):
        """The line and the path within it."""
        text = (
            json.dumps(SPOKEN) + "\n" + json.dumps({"data": [SPOKEN, {"spans": [{"traceId": "t", "parentId": None}]}]})
        )
        _, problem = read_traces(io.BytesIO(text.encode()), name="f")
        assert (2, "data[1].spans[0]") == (problem.line, problem.path)
        assert "the fields traceId and parentId" in str(problem)

    @pytest.mark.parametrize(
        "document",
        [
            {**SPOKEN, "trace_id": "t"},
            {**SPOKEN, "id": "b", "parent_id": "a"},
            {**SPOKEN, "trace_id": "t", "start_time": 1},
            {**SPOKEN, "session_id": "s", "user_id": "u", "latency": 1.0, "timestamp": 1, "total_cost": 1},
            {"messages": [*SPOKEN["messages"], {"role": "tool", "content": "x", "metadata": {"trace_id": "t"}}]},
            {**SPOKEN, "tools": [{"parameters": {"properties": {"trace_id": {}, "parent_id": {}}}}]},
            {"input": "q", "output": {"text": "a", "trace_id": "t", "parent_id": "p"}},
            {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"trace_id": "t", "parent_id": "p"}}]}]},
        ],
    )  # fmt: skip
    def test_chats_may_mention_ids(self, document):
        """An id of one kind beside a chat makes no span, and neither do ids that the agent works with."""
        assert [ReasoningTrace] == [type(item) for item in read_traces(io.BytesIO(json.dumps(document).encode()))]

    def test_traces_may_hold_ids(self):
        """A valid ReasoningTrace is one whatever else it holds, in every wrapping."""
        [trace] = read_traces(io.BytesIO(json.dumps(SPOKEN).encode()))
        document = {**trace.to_dict(), "trace_id": "t", "parent_id": "p", "spans": [{"traceId": "t", "spanId": "s"}]}
        for text in (json.dumps(document), json.dumps([document], indent=1), json.dumps({"data": [document, SPOKEN]})):
            assert {ReasoningTrace} == {type(item) for item in read_traces(io.BytesIO(text.encode()))}


def test_duplicate_keys_are_refused():
    """Python would keep the last value only."""
    assert {"a": 1, "b": 2} == object_without_duplicates([("a", 1), ("b", 2)])
    with pytest.raises(ValueError, match="duplicate key 'a'"):
        object_without_duplicates([("a", 1), ("a", 2)])


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_beyond_the_bound_is_reported_and_the_next_is_read(tmp_path, packed):
    """The message names the bound and how to raise it."""
    path = tmp_path / "a.jsonl"
    documents = [json.dumps({**native(number), "note": "x" * 40_000 * (number == 2)}) for number in (1, 2, 3)]
    data = ("\n".join(documents) + "\n").encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    one, two, three = gk.read_traces(path, max_document_mb=0.01)
    assert ("kp:trace:1", "kp:trace:3") == (one.id, three.id)
    assert f"{path}:2" in str(two)
    assert "longer than 0.01 MB" in str(two)
    assert "GRACE_KP_MAX_DOCUMENT_MB" in str(two)
    assert 3 == sum(isinstance(item, gk.ReasoningTrace) for item in gk.read_traces(path))


def test_a_document_over_several_lines_has_the_same_bound(tmp_path, monkeypatch):
    """The setting raises it."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{**native(n), "note": "x" * 500} for n in range(40)], indent=1))
    monkeypatch.setenv("GRACE_KP_MAX_DOCUMENT_MB", "0.01")
    (found,) = gk.read_traces(path)
    assert "a document over several lines is longer than 0.01 MB" in str(found)
    monkeypatch.setenv("GRACE_KP_MAX_DOCUMENT_MB", "1")
    assert 40 == len(list(gk.read_traces(path)))


BOMBS = {
    "one line": lambda: [b"[" + b" " * (1 << 20)] * 250,
    "an object that never ends": lambda: [b'{"a":\n'] + [b'"' + b"x" * (1 << 20) + b'",\n'] * 250,
    "many lists": lambda: [b"[[],[],[],[],\n"] + [b"[]," * (1 << 18)] * 100,
}


@pytest.mark.parametrize("make", BOMBS.values(), ids=BOMBS)
def test_an_import_of_a_compression_bomb_stays_small(tmp_path, make):
    """Gigabytes behind a few megabytes end in one line on stderr, within the memory of a small process."""
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for piece in make():
            file.write(piece)
    # Where threads are free, the allocator reserves addresses by the gigabyte.
    megabytes = 1_624 if sysconfig.get_config_var("Py_GIL_DISABLED") else 600
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2);"
        "from grace_kp.cli._app import main; main(['traces', 'import', sys.argv[2], '--store', 'memory:'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(megabytes), str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "GRACE_KP_MAX_DOCUMENT_MB": "2", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (1, True) == (ran.returncode, "MemoryError" not in ran.stderr), ran.stderr[-2_000:]
    assert "longer than 2 MB" in ran.stderr


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30), st.booleans(), st.booleans())
def test_lines_are_those_of_the_file(pieces, limit, packed, as_text):
    """Joined they are the file; each that is longer than the bound is named in its place."""
    data = b"\n".join(piece.replace(b"\r", b"") for piece in pieces)
    if data.startswith(b"\x1f\x8b"):
        return
    if as_text and not packed:
        try:
            source = io.StringIO(data.decode(), newline="\n")
        except UnicodeDecodeError:
            return
    else:
        source = io.BytesIO(gzip.compress(data) if packed else data)
    lines = [part + b"\n" for part in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    expected = ["long" if len(line.rstrip(b"\n")) > limit else line for line in lines if line]
    assert expected == ["long" if isinstance(line, TooLong) else line for line in lines_of(source, limit)]
