"""Judgements of runs, and the confidence and value score of a finished run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import textwrap
import threading

import pytest

import grace_kp as gk
from grace_kp.protocols import JudgeReply
from grace_kp.runtime import ProfileSet
from grace_kp.runtime._assessment import Assessor, Judgement
from grace_kp.value import ValueScorer

BOTH = '{"score": 0.9, "reason": "right", "coverage": 0.8, "coverage_reason": "nearly all"}'


def judge_of(reply=BOTH):
    prompts = []

    def judge(prompt):
        prompts.append(prompt)
        return reply

    judge.prompts = prompts
    return judge


def runtime(model=None, **settings):
    settings.setdefault("store", "memory:")
    settings.setdefault("embedder", None)
    return gk.Grace(evaluator=model, reviewer=None, **settings)


def asked(grace, question="What is the capital of France?", answer="Paris"):

    @grace.retriever
    def search(query):
        return [{"text": "Paris is the capital of France.", "score": 0.9, "source": "a"}]

    @grace.agent
    def agent(question):
        search(question)
        return answer

    with grace.collect() as traces:
        agent(question)
    return traces[0]


def test_a_run_is_judged_with_its_question_answer_and_sources():
    judge = judge_of(JudgeReply(BOTH, model="m-1", tokens_in=200, tokens_out=30))
    trace = asked(runtime(judge))
    (prompt,) = judge.prompts
    for text in ("What is the capital of France?", "Paris is the capital of France.", "ANSWER"):
        assert text in prompt
    told = trace.grace["evaluation"]
    assert ("always", 1, 230) == (told["mode"], told["calls"], told["tokens"])
    assert (0.9, "right", "m-1") == tuple(told["self_evaluation"][name] for name in ("score", "reason", "model"))
    assert 0.8 == told["coverage"]["score"]
    assert told["latency_ms"] >= 0
    confidence = trace.grace["confidence"]
    assert (0.9, 0.8) == (confidence["breakdown"]["llm_self_eval"], confidence["breakdown"]["query_coverage"])
    assert not {"llm_self_eval", "query_coverage"} & set(confidence["not_evaluated"])


@pytest.mark.parametrize("reply", ["no idea", "", None, "0.1 or 0.9"])
def test_a_judgement_that_fails_is_marked(reply):
    trace = asked(runtime(judge_of(reply)))
    told = trace.grace["evaluation"]
    assert (0.5, True) == (told["self_evaluation"]["score"], told["self_evaluation"]["fallback"])
    assert told["self_evaluation"]["error"]
    assert {"llm_self_eval", "query_coverage"} <= set(trace.grace["confidence"]["not_evaluated"])


def test_without_a_judge_everything_works_and_says_so():
    for evaluator in (None, "auto"):
        grace = gk.Grace(store="memory:", evaluator=evaluator, embedder="auto", reviewer=None)
        trace = asked(grace)
        assert trace.grace["evaluation"]["skipped"].startswith("no judge: ")
        assert {"llm_self_eval", "query_coverage"} <= set(trace.grace["confidence"]["not_evaluated"])
        assert 0.5 == trace.grace["value"]["novelty"]
        assert trace.grace["value"]["novelty_fallback"]
        grace.close()


def test_runs_that_have_nothing_to_judge_say_so():
    judge = judge_of()
    grace = runtime(judge)
    with pytest.raises(ValueError, match="x"), grace.run("fails") as run:
        raise ValueError("x")
    assert "the run did not complete" == run.trace.grace["evaluation"]["skipped"]
    with grace.run("silent") as run:
        pass
    assert "the run gave no answer to judge" == run.trace.grace["evaluation"]["skipped"]
    assert "not asked for" == asked(runtime(judge, judge="never")).grace["evaluation"]["skipped"]
    assert [] == judge.prompts


def test_when_needed_asks_only_where_it_could_matter():
    for tools_fail, needed in ((False, True), (True, False)):
        levels = {}
        for mode in ("always", "when_needed"):
            judge = judge_of()
            grace = runtime(judge, judge=mode, thresholds=gk.Thresholds(0.9, 0.85, 0.8))

            @grace.tool
            def look(grace=grace, tools_fail=tools_fail):
                if tools_fail:
                    raise OSError("down")

            with grace.run("objective") as run:
                for _ in range(4):
                    with contextlib.suppress(OSError):
                        look()
                run.outcome(result="an answer")
            trace = run.trace
            levels[mode] = (
                gk.ConfidenceCalculator(thresholds=gk.Thresholds(0.9, 0.85, 0.8))
                .decide_action(trace.grace["confidence"]["score"])
                .level
            )
            if mode == "when_needed":
                assert needed == bool(judge.prompts)
                assert needed != ("not needed" in trace.grace["evaluation"].get("skipped", ""))
        assert levels["always"] == levels["when_needed"]


def test_when_needed_leaves_out_the_second_call_where_it_cannot_matter():
    judge = judge_of('{"score": 0.2}')
    trace = asked(runtime(judge, judge="when_needed", judge_combined=False, thresholds=gk.Thresholds(0.95, 0.3, 0.1)))
    assert 1 == len(judge.prompts)
    told = trace.grace["evaluation"]
    assert (1, True, False) == (told["calls"], "not needed" in told["coverage_skipped"], "coverage" in told)
    assert "query_coverage" in trace.grace["confidence"]["not_evaluated"]


def test_an_agent_that_outruns_its_judge_is_not_slowed(monkeypatch):
    monkeypatch.setattr("grace_kp.runtime._assessment.MAX_WAITING", 2)
    gate, skip = threading.Event(), Judgement.skip
    monkeypatch.setattr(Judgement, "skip", lambda *arguments: (skip(*arguments), gate.set()))
    grace = runtime(lambda prompt: (gate.wait(60), BOTH)[1], judge_calls_per_minute=0, judge_timeout=60)
    agent = grace.agent(lambda number: f"answer {number}", name="agent")
    for number in range(6):
        agent(number)
    assert grace.flush(60)
    judged = [trace.grace["evaluation"]["self_evaluation"] for trace in grace.store.query()]
    late = [each for each in judged if each.get("error") == "more than 2 runs wait for a judgement"]
    assert (6, True) == (len(judged), 0 < len(late) <= 4)
    assert all(each["fallback"] for each in late)
    assert 0 == grace.status()["writer"]["dropped"]


def test_a_judge_that_hangs_costs_its_timeout_and_no_more():
    gate = threading.Event()
    grace = runtime(lambda prompt: gate.wait(60), judge_timeout=0.2)
    with grace.run("objective") as run:
        run.outcome(result="answer")
    assert "did not answer within" in run.trace.grace["evaluation"]["self_evaluation"]["error"]
    gate.set()


SCRIPT = """
import sys, time
import grace_kp as gk

def judge(prompt):
    time.sleep(float(sys.argv[2]))
    return '{"score": 0.9, "reason": "right", "coverage": 0.8}'

grace = gk.Grace(store=sys.argv[1], evaluator=judge, embedder=None, reviewer=None, judge_timeout=float(sys.argv[3]))

@grace.agent
def agent(question):
    return "answer"

agent("question")
"""


@pytest.mark.parametrize(("seconds", "patience", "judged"), [("0.5", "20", True), ("60", "0.3", False)])
def test_a_script_that_ends_gets_its_judgement(tmp_path, seconds, patience, judged):
    url = f"sqlite:///{tmp_path / 't.db'}"
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, url, seconds, patience], capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    (trace,) = gk.Grace(store=url, evaluator=None, embedder=None).store.query()
    # Python 3.12.0 and 3.12.1 start no thread while the interpreter exits, so nobody can be asked.
    judged = judged and sys.version_info[:3] not in {(3, 12, 0), (3, 12, 1)}
    assert judged != trace.grace["evaluation"]["self_evaluation"].get("fallback", False)


def test_a_forked_child_judges_its_own_runs(tmp_path):
    url = f"sqlite:///{tmp_path / 't.db'}"
    code = SCRIPT + textwrap.dedent("""
    import os, signal
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        agent("of the child")
        os._exit(0 if grace.flush(60) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert grace.flush(60)  # Python 3.12.0 and 3.12.1 start no thread while the interpreter exits
    """)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, url, "0.05", "20"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    traces = gk.Grace(store=url, evaluator=None, embedder=None).store.query()
    assert ["of the child", "question"] == sorted(trace.task.objective for trace in traces)
    assert all(trace.grace["evaluation"]["self_evaluation"]["score"] == 0.9 for trace in traces)


def test_secrets_never_reach_the_judge():
    """Nor do identifiers: it may be another company's."""
    judge = judge_of()
    grace = runtime(judge)

    @grace.tool
    def login(password):
        return "logged in as ann@example.com with sk-proj-abcdefghijklmnop1234567890"

    with grace.run("log in with password=hunter2secret") as run:
        login("hunter2secret")
        run.outcome(result="done, call 090-1234-5678")
    assert run.trace
    for text in ("hunter2secret", "ann@example.com", "sk-proj-abcdef", "1234-5678"):
        assert text not in judge.prompts[0]


def test_the_agreement_of_sources_is_measured():
    """By the embedder, over the texts that searches found; without one it is a fallback, as before."""
    texts = {"Paris is the capital.": [1.0, 0.0], "The capital is Paris.": [0.8, 0.6]}

    def found(grace):
        @grace.retriever
        def search(query):
            return [{"text": text, "source": f"s{n}", "score": 0.9} for n, text in enumerate(texts)]

        with grace.run("objective") as run:
            search("q")
            run.outcome(result="Paris")
        return run.trace.grace

    grace = runtime(embedder=lambda text: texts.get(text, [1.0, 1.0]))
    told = found(grace)
    assert 0.8 == pytest.approx(told["confidence"]["breakdown"]["source_agreement"], abs=1e-6)
    assert 0.8 == pytest.approx(told["evaluation"]["source_agreement"]["score"], abs=1e-6)
    assert "source_agreement" not in told["confidence"]["not_evaluated"]
    told = found(runtime())
    assert told["confidence"]["breakdown"]["source_agreement"] is None
    assert "source_agreement" in told["confidence"]["not_evaluated"]


# Before a gate.


def sent(grace, *, judge, **gate):
    done = []

    @grace.gate(judge=judge, **gate)
    def send(to, text):
        done.append((to, text))
        return "sent"

    with grace.run("tell Ann") as run:
        try:
            send("Ann", "hello")
        except gk.ActionCancelled:
            done.append("cancelled")
        run.outcome(result="told")
    return done, run.trace.grace["decisions"][0]


def test_a_gate_that_asks_for_a_judgement_gets_it():
    """The judge sees the action that is proposed, and its answer decides."""
    good, bad = judge_of(), judge_of('{"score": 0.61, "coverage": 0.2}')
    done, entry = sent(runtime(good, judge="never", thresholds=gk.Thresholds(0.9, 0.8, 0.3)), judge="always")
    assert [("Ann", "hello")] == done
    assert "send(to=Ann, text=hello)" in good.prompts[0]
    assert (0.9, 1) == (entry["evaluation"]["self_evaluation"]["score"], entry["evaluation"]["calls"])
    done, entry = sent(runtime(bad, judge="never", thresholds=gk.Thresholds(0.9, 0.8, 0.3)), judge="always")
    assert ["cancelled"] == done
    assert "confirm" == entry["level"]


async def test_an_async_gate_does_not_block_the_loop_while_it_is_judged():
    loop = asyncio.get_running_loop()

    async def reply():
        return BOTH

    grace = runtime(lambda prompt: asyncio.run_coroutine_threadsafe(reply(), loop).result(60), judge="never")
    send = grace.gate(judge="always")(reply)
    with grace.run("tell Ann") as run:
        assert BOTH == await send()
    assert 0.9 == run.trace.grace["decisions"][0]["evaluation"]["self_evaluation"]["score"]


def test_the_runtime_tells_which_models_it_uses_and_what_they_cost():
    grace = runtime(judge_of())
    asked(grace)
    told = grace.status()["models"]
    assert ("judge", "evaluator was given") == (told["evaluator"]["name"], told["evaluator"]["why"])
    assert ("none", 1) == (told["embedder"]["name"], told["judging"]["calls"])


def test_names_of_models_and_of_what_they_raise_hold_no_secret():
    """The judge's name, and the classes that the judge, the embedder and a hook raise: in traces and in the status."""
    secret = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"

    def fails(*arguments):
        raise type(secret, (Exception,), {})("no")

    fails.__name__ = secret
    embedder = type("Embedder", (), {"dimensions": 4, "embed": fails})()
    with gk.Grace(store="memory:", evaluator=fails, embedder=embedder) as grace:
        grace.on_complete(fails)
        with grace.run("question") as run:
            run.outcome(result="answer")
        grace.flush()
        text = grace.store.get(run.id).to_json() + json.dumps(grace.status(), default=str)
    assert ("[REDACTED:api_key]" in text, secret in text) == (True, False)


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_a_known_confidence_is_recorded_as_a_new_one(profile):
    """The records of runs with the same factors are equal, and a sentence added to one does not appear in the next."""
    profiles = ProfileSet.of(profile)
    known, calls = Assessor(profiles, ValueScorer), [{"status": "ok"}, {"status": "error"}, {"status": "ok"}]
    for success in (False, True, False, True):
        documents = [
            {
                "metadata": {"success": success, "task_domain": "x"},
                "steps": [{"type": "tool_call", "tool": {"name": "look"}}],
                "outcome": {},
                "grace": {"calls": calls},
            }
            for _ in range(2)
        ]
        known.assess(documents[0], own_confidence=0.25)
        Assessor(profiles, ValueScorer).assess(documents[1], own_confidence=0.25)
        assert documents[1] == documents[0]
        assert success is ("run_failed" not in documents[0]["grace"]["confidence"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "No evidence: "),
        (KeyError, "The run failed with KeyError. No evidence: "),
        (asyncio.CancelledError, "The run was cancelled."),
        (KeyboardInterrupt, "The run was cancelled."),
        (SystemExit, "The run ended with the program's exit."),
        (GeneratorExit, "The run was closed before its end."),
    ],
)
def test_the_reason_states_how_a_run_ended(error, words):
    """Nothing was evaluated, so no part has a figure, and the score is the formula's, however the run ended."""
    grace = runtime()
    with pytest.raises(error) if error else contextlib.nullcontext(), grace.run("break") as run:
        if error is not None:
            raise error
    confidence = run.trace.grace["confidence"]
    assert (0.7, error is not None) == (confidence["score"], "run_failed" in confidence)
    assert confidence["reason"].startswith(words)
    assert {None} == set(confidence["breakdown"].values())
    assert "tool" not in confidence["reason"]
