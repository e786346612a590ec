"""The table of `docs/how-to/gate.md` states the level that a gate has after each kind of evidence. `python tests/docs/test_levels.py` prints it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import grace_kp as gk
from grace_kp.confidence import ConfidenceFactors, ConfidenceScore
from grace_kp.testing import ScriptedJudge, make_grace

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "gate.md"
HEAD = "| evidence of the run | `grace` | `strict` | learned, 0.95 |\n|--|--|--|--|\n"


class Learned:
    """A profile that gives every run the probability 0.95."""

    name = "learned"

    def calculate(self, factors):
        return ConfidenceScore(0.95, factors)

    def confidence(self, document, *, moment):
        return self.calculate(ConfidenceFactors())


def hit(score=None):
    return {"text": "t", "source": "s", **({} if score is None else {"score": score})}


def search(*hits):
    return "search", list(hits)


OK, FAIL, GOOD = ("look", False), ("look", True), search(hit(0.95))
WORDS = ("words", "The next question")
ROWS = [
    ("nothing", []),
    ("a tool that succeeded, or 30", [OK] * 30),
    ("a tool whose last call failed", [OK, FAIL]),
    ("that, then 30 calls of other tools", [FAIL, *[("idle", False)] * 30]),
    ("a search without results", [search()]),
    ("results without scores", [search(hit())]),
    ("a confidence that the run states itself", [("states", 1.0)]),
    ("an agreement of sources, or a judge, that failed", [("judge", None)]),
    ("a judgement of 0.9", [("judge", 0.9)]),
    ("a judgement of 0.2", [("judge", 0.2)]),
    ("a search, best score 0.95", [GOOD]),
    ("a search, best score 0.75", [search(hit(0.75))]),
    ("a search, best score 0.3", [search(hit(0.3))]),
    ("scores 0.1 and 0.95 in two searches", [search(hit(0.1)), GOOD]),
    ("those, with words of the user between them", [search(hit(0.1)), WORDS, GOOD]),
    ("0.95, and a tool whose last call failed", [GOOD, FAIL]),
    ("0.95, and a tool that failed once and then worked", [GOOD, FAIL, OK]),
    ("0.95, and a score that cannot be used", [GOOD, search(hit(float("nan")))]),
]


def level(steps, profile, **configuration):
    """The level of an action without a floor after these steps."""
    judged = [value for kind, value in steps if kind == "judge"]
    judge = ScriptedJudge(judged[0] if judged and judged[0] is not None else RuntimeError("down"))
    grace = make_grace(
        profile=profile, evaluator=judge, reviewer=lambda request: gk.InterventionResponse("cancel"), **configuration
    )
    find = grace.retriever(lambda found: found)
    act = grace.gate(judge="always" if judged else "never")(lambda: None)

    def work(fails):
        if fails:
            raise LookupError

    tools = {name: grace.tool(name=name)(work) for name in ("look", "idle")}
    with grace.run("work") as run:
        for kind, value in steps:
            if kind in tools:
                with contextlib.suppress(LookupError):
                    tools[kind](value)
            elif kind == "search":
                find(value)
            elif kind == "states":
                run.outcome(confidence=value)
            elif kind == "words":
                run.user_message(value)
        with contextlib.suppress(gk.ActionCancelled):
            act()
    grace.close()
    return str(run.trace.decisions[0].level).upper()


def table():
    """The table as the page shows it."""
    rows = [(text, *(level(steps, profile) for profile in ("grace", "strict", Learned()))) for text, steps in ROWS]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_the_page_states_the_level_after_each_kind_of_evidence():
    assert table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(table())
