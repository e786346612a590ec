"""Recorded chats become traces: steps, linked calls, errors and recoveries, objective and success."""

from __future__ import annotations

import datetime
import json

import pytest

from grace_kp import InvalidTrace, from_openai_messages
from grace_kp.confidence import factors_from_trace
from grace_kp.trace.formats import read_run
from tests.trace.formats.chats import CHAT, assistant, call, contents, kinds, tool, user


class TestSteps:
    def test_each_turn_becomes_its_step(self):
        """Text is a thought, a call a tool_call, a result an observation; a survived error gives an error_recovery."""
        trace = from_openai_messages(CHAT)
        assert [
            "tool_call", "observation", "error_recovery", "thought", "tool_call", "observation", "thought",
            "observation", "tool_call", "observation", "thought",
        ] == kinds(trace)  # fmt: skip
        assert list(range(11)) == [step.step_id for step in trace.steps]
        assert "A seat to Oslo, please." == trace.task.objective
        assert "Booked, have a good flight." == trace.outcome.result_summary
        assert {"to": "Oslo"} == trace.steps[0].input
        assert "search" == trace.steps[0].tool.name
        assert "Recovered from search: Error: no such airport" == trace.steps[2].content
        assert "I take it." == trace.steps[7].content

    def test_later_messages_of_the_user_are_marked_as_theirs(self):
        """An action that follows them can be right because of what they name; no other text is a person's."""
        unknown = [{"role": "critic", "content": "weak"}, assistant("So be it.")]
        steps = from_openai_messages([*CHAT, *unknown]).to_dict()["steps"]
        assert ["I take it."] == [step["content"] for step in steps if step.get("role") == "user"]

    def test_calls_are_linked_to_their_results(self):
        """Every call says which steps it has, how it ended, and what its id was in the chat."""
        assert [
            {"call_id": "c0", "name": "search", "tool_call": 0, "status": "error", "source_id": "a", "observation": 1,
             "error": {"type": "Error", "message": "no such airport"}, "recovery": 2},
            {"call_id": "c1", "name": "search", "tool_call": 4, "status": "ok", "source_id": "b", "observation": 5},
            {"call_id": "c2", "name": "book", "tool_call": 8, "status": "ok", "source_id": "a", "observation": 9},
        ] == from_openai_messages(CHAT).grace["calls"]  # fmt: skip

    def test_the_trace_is_marked_as_unscored(self):
        """The confidence is not computed yet, and that is said; the evidence for it can be read off the trace."""
        trace = from_openai_messages(CHAT)
        assert (0.5, 0.0) == (trace.outcome.confidence, trace.metadata.quality_score)
        assert (True, "completed", "openai_messages") == tuple(trace.grace[k] for k in ("unscored", "status", "format"))
        factors = factors_from_trace(trace)
        assert (3, 2) == (factors.tool_execution_count, factors.tool_success_count)

    def test_an_unknown_role_is_an_observation_and_counted(self):
        """Nothing is lost because its role is not known."""
        trace = from_openai_messages([user("q"), {"role": "Critic", "content": "weak"}, assistant("a")])
        assert [("observation", "weak"), ("thought", "a")] == list(zip(kinds(trace), contents(trace), strict=True))
        assert {"critic": 1} == trace.grace["unknown_roles"]

    def test_unknown_roles_are_counted_within_bounds(self):
        """Thousands of invented roles do not swell the trace."""
        chat = [user("q"), *({"role": f"role {n}", "content": "x"} for n in range(500)), assistant("a")]
        counted = from_openai_messages(chat).grace["unknown_roles"]
        assert (21, 500) == (len(counted), sum(counted.values()))

    def test_a_run_may_end_on_a_call_without_a_result(self):
        """The last call stays unfinished and says nothing about the tool."""
        trace = from_openai_messages([user("q"), assistant(None, call("submit"))])
        assert "unfinished" == trace.grace["calls"][0]["status"]
        assert "observation" not in trace.grace["calls"][0]
        assert 0 == factors_from_trace(trace).tool_execution_count
        assert not trace.metadata.success

    def test_long_texts_are_cut_visibly(self):
        """Thoughts, results, arguments and the objective keep within the limit, and say that they were cut."""
        long = "word " * 5_000
        chat = [user(long), assistant(long, call("t", json.dumps({"x": long}))), tool(long), assistant("ok")]
        trace = from_openai_messages(chat, max_text=1_000)
        texts = [trace.task.objective, trace.steps[0].content, trace.steps[1].input["x"], trace.steps[2].content]
        assert all("[cut: " in text and len(text) < 1_100 for text in texts)

    @pytest.mark.parametrize(("length", "kept"), [(50_000, None), (60_000, "50,000 of 60,000")])
    def test_a_string_in_the_content_of_a_result_is_kept_up_to_the_limit(self, length, kept):
        chat = [user("q"), assistant(None, call("t")), tool(["x" * length])]
        content = from_openai_messages(chat, max_text=50_000).steps[1].content
        mark = f"… [cut: {kept} characters kept]" if kept else ""
        assert "x" * 50_000 + mark == content


class TestObjective:
    def test_the_first_words_of_the_user_are_the_objective_and_no_step(self):
        """Also when the agent greets first."""
        trace = from_openai_messages([assistant("Hi!"), user("Help me."), assistant("Done.")])
        assert ("Help me.", ["Hi!", "Done."]) == (trace.task.objective, contents(trace))

    def test_an_objective_that_is_given_wins_and_the_words_are_kept(self):
        """Naming the run differently changes neither its steps nor loses the prompt."""
        trace = from_openai_messages(CHAT, objective="Sell a seat")
        assert ("Sell a seat", "A seat to Oslo, please.") == (trace.task.objective, trace.grace["prompt"])
        assert contents(from_openai_messages(CHAT)) == contents(trace)

    @pytest.mark.parametrize(
        ("chat", "objective"),
        [
            ([{"role": "system", "content": "\nSort mail.\nNow."}, assistant("ok")], "Sort mail."),
            ([assistant("ok")], "(no objective)"),
            ([user("   "), user("Real words"), assistant("ok")], "Real words"),
            ([user([{"type": "image_url", "image_url": {"url": "data:…"}}]), assistant("a cat")], "[image]"),
        ],
    )
    def test_without_words_of_the_user_something_else_stands_in(self, chat, objective):
        """The first line of the instructions, or a placeholder."""
        assert objective == from_openai_messages(chat).task.objective


class TestLinks:
    def linked(self, chat):
        """Which content each call got, by tool name and order."""
        trace = from_openai_messages(chat)
        steps = trace.steps
        return [
            (entry["name"], steps[entry["observation"]].content if "observation" in entry else None)
            for entry in trace.grace["calls"]
        ]

    def test_ids_repeat_within_a_run(self):
        """The oldest call of that id which has no result yet is the one that is answered."""
        chat = [user("q")]
        for n in range(3):
            chat += [assistant(None, call("t", f'{{"n": {n}}}', "same")), tool(f"r{n}", "same")]
        assert [("t", "r0"), ("t", "r1"), ("t", "r2")] == self.linked(chat)

    def test_results_may_come_in_another_order(self):
        """Parallel calls are told apart by id."""
        calls = [call("a", call_id="1"), call("b", call_id="2"), call("a", call_id="3")]
        chat = [user("q"), assistant(None, *calls), tool("third", "3"), tool("first", "1"), tool("second", "2")]
        assert [("a", "first"), ("b", "second"), ("a", "third")] == self.linked(chat)

    def test_parallel_calls_of_one_id_are_told_apart_by_name(self):
        """Some recorders give every call of a turn the same id."""
        chat = [user("q"), assistant(None, call("a"), call("b")), tool("B", name="b"), tool("A", name="a")]
        assert [("a", "A"), ("b", "B")] == self.linked(chat)

    def test_without_id_and_name_the_order_decides(self):
        """A result that names nothing answers the oldest open call."""
        chat = [user("q"), assistant(None, call("a"), call("b")), *({"role": "tool", "content": c} for c in "AB")]
        assert [("a", "A"), ("b", "B")] == self.linked(chat)

    def test_a_result_of_no_call_is_an_observation_of_its_own(self):
        """It is counted, and no call is marked by it."""
        trace = from_openai_messages([user("q"), assistant(None, call("a")), tool("x", "other"), tool("y", "c1")])
        assert (1, "ok") == (trace.grace["unlinked_observations"], trace.grace["calls"][0]["status"])
        assert ["tool_call", "observation", "observation"] == kinds(trace)


class TestErrors:
    @pytest.mark.parametrize(
        "result",
        [
            tool("Error executing query: no such table", is_error=False),
            tool("Traceback (most recent call last):\n  File x\nValueError: no"),
            tool("no", is_error=True),
            tool("no", status="error"),
            tool("no", error={"type": "timeout", "message": "no"}),
            tool(None, error="no"),
            tool([{"type": "text", "text": "Error: no"}]),
            tool({"content": [{"type": "text", "text": "no"}], "isError": True}),
            tool({"type": "error-text", "value": "no"}),
        ],
    )
    def test_an_error_marks_its_call_and_is_recovered_from_when_the_run_goes_on(self, result):
        """Recorders mark errors in different ways, or only in the text."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), result, assistant("never mind")])
        assert ["tool_call", "observation", "error_recovery", "thought"] == kinds(trace)
        entry = trace.grace["calls"][0]
        assert ("error", 2) == (entry["status"], entry["recovery"])
        assert "no" in entry["error"]["message"]
        assert trace.metadata.success

    @pytest.mark.parametrize("text", ["error: no", "No Errors", "", "an Error", '{"error": "no"}', "ok"])
    def test_ordinary_text_is_no_error(self, text):
        """Only the beginning of the text counts, and case matters."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool(text), assistant("a")])
        assert "ok" == trace.grace["calls"][0]["status"]

    @pytest.mark.parametrize(
        ("text", "kind", "message"),
        [
            ("Traceback (most recent call last):\n  x\nhttpx.ReadTimeout: slow", "httpx.ReadTimeout", "slow"),
            ("Traceback (most recent call last):\n  x\nKeyError: 'a'\n", "KeyError", "'a'"),
            ("Error executing query: no", "ToolError", "Error executing query: no"),
        ],
    )
    def test_the_error_is_named_as_far_as_its_text_shows(self, text, kind, message):
        """Type and message, also from a traceback."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool(text)])
        assert {"type": kind, "message": message} == trace.grace["calls"][0]["error"]

    def test_a_run_known_to_have_succeeded_has_survived_its_last_error(self):
        """It ended normally, so the error did not end it."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool("Error: no")], success=True)
        assert ["tool_call", "observation", "error_recovery"] == kinds(trace)

    def test_the_results_of_parallel_calls_come_before_the_recovery(self):
        """One recovery for each error, when the agent goes on."""
        calls = [call("a", call_id="1"), call("b", call_id="2"), call("c", call_id="3")]
        results = [tool("Error: 1", "1"), tool("fine", "2"), tool("Error: 3", "3")]
        trace = from_openai_messages([user("q"), assistant(None, *calls), *results, assistant("ok")])
        assert [*["tool_call"] * 3, *["observation"] * 3, *["error_recovery"] * 2, "thought"] == kinds(trace)


class TestSuccess:
    @pytest.mark.parametrize(
        ("end", "success"),
        [
            ([assistant("Done.")], True),
            ([assistant("Done."), user("thanks")], False),
            ([assistant(None, call("t")), tool("ok")], False),
            ([assistant("calling", call("t"))], False),
            ([assistant(None, refusal="I will not.")], False),
            ([assistant([{"type": "thinking", "thinking": "hm"}])], False),
        ],
    )
    def test_it_is_assumed_only_of_a_run_that_ends_in_an_answer(self, end, success):
        """And the trace says that it is an assumption."""
        trace = from_openai_messages([user("q"), *end])
        assert (success, "assumed") == (trace.metadata.success, trace.grace["success_from"])


class TestIdentity:
    def test_what_is_given_stands_in_the_trace(self):
        """Domain, framework, agent, id and further facts are the caller's."""
        trace = from_openai_messages(
            CHAT, id="kp:trace:x", domain="code", framework="mine", agent_id="kp:agent:a", extra={"seed": 7}
        )
        known = (trace.id, trace.metadata.task_domain, trace.metadata.framework, trace.metadata.agent_id)
        assert ("kp:trace:x", "code", "mine", "kp:agent:a") == known
        assert {"seed": 7} == trace.grace["source"]


class TestTimes:
    @pytest.mark.parametrize(
        ("given", "written"),
        [
            ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00.000Z"),
            ("2024-05-01 10:00:00.25", "2024-05-01T10:00:00.250Z"),
            ("2024-05-01", "2024-05-01T00:00:00.000Z"),
            (1714557600, "2024-05-01T10:00:00.000Z"),
            (1714557600000, "2024-05-01T10:00:00.000Z"),
            ("1714557600", "2024-05-01T10:00:00.000Z"),
            (datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC), "2024-05-01T10:00:00.000Z"),
        ],
    )
    def test_times_are_understood_in_their_usual_forms(self, given, written):
        """ISO 8601 with or without zone, seconds or milliseconds since the epoch."""
        assert written == from_openai_messages(CHAT, created_at=given).metadata.created_at
        document = {"messages": CHAT, "timestamp": given if not isinstance(given, datetime.datetime) else str(given)}
        trace = read_run(document, fallback_created_at="2001-01-01T00:00:00Z")
        assert (written, "document") == (trace.metadata.created_at, trace.grace["created_from"])

    def test_a_run_that_says_no_time_gets_that_of_its_file_or_none(self):
        """1970 stands for unknown, and the trace says so."""
        with_file = read_run(CHAT, fallback_created_at="2001-01-01T00:00:00Z")
        assert ("2001-01-01T00:00:00Z", "file") == (with_file.metadata.created_at, with_file.grace["created_from"])
        alone = from_openai_messages(CHAT)
        assert ("1970-01-01T00:00:00.000Z", "unknown") == (alone.metadata.created_at, alone.grace["created_from"])

    @pytest.mark.parametrize("when", ["soon", -1, float("nan"), float("inf"), True, 12, "", "9999-99-99"])
    def test_a_time_that_is_none_is_refused_when_given_and_passed_over_in_a_document(self, when):
        """A slip of the caller's is told; a foreign document is taken as it is."""
        with pytest.raises(InvalidTrace, match=r"^metadata.created_at: "):
            from_openai_messages(CHAT, created_at=when)
        assert "unknown" == read_run({"messages": CHAT, "created_at": when}).grace["created_from"]
