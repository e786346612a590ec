"""Deciding between two prompts over three rounds, offline: outputs judged twice by the answer key, the verdict, and the page of the rounds."""

import json
import re
import tempfile
from pathlib import Path

from grace_kp import rubric as rb

# Two documents with planted problems; the key says what a finding must name to count as detected.
KEYS = {
    "contract": ["liability", "penalty", "payment", "notice", "renewal", "warranty", "audit", "law", "typo", "date"],
    "service": ["secret", "timeout", "retry", "index", "lock", "log", "cache", "name", "comment", "unit"],
}
SHAPE = [("main", "critical")] * 3 + [("main", "medium")] * 3 + [("adjacent", "medium"), ("adjacent", "minor")]
SHAPE += [("subtle", "minor")] * 2
tests = rb.TestSet(
    tuple(
        rb.Document(
            name,
            domain,
            tuple(
                rb.Problem(word, kind, severity, key=f"names the {word}")
                for word, (kind, severity) in zip(words, SHAPE, strict=True)
            ),
            bonus_candidates=3,
            text=f"A {name} with planted problems.",
        )
        for (name, words), domain in zip(KEYS.items(), ("law", "software"), strict=True)
    ),
    scope="Problems that cost money or trust.",
)
print("test set:", tests.check() or "balanced")


def review(document: str, run: int, finds: int, vague: int, wrong: int = 0) -> str:
    """Plays a reviewing model under some prompt: it names the first problems, hints at some, and may be wrong."""
    words = KEYS[document]
    said = [f"The {word} is a problem." for word in words[: finds - run]]
    said += [f"Something about the {word[:3]}~ may be off." for word in words[finds - run : finds - run + vague]]
    return "\n".join(said + ["The moon is made of cheese."] * wrong)


def judge(prompt: str) -> str:
    """Plays a model that judges by the key; `gk.GeminiJudge()` is a real one, and `rb.PersonRater()` asks you."""
    code = re.findall(r'"([0-9a-f]{12})-n"', prompt)[0]
    findings = prompt[prompt.rindex("<<<FINDINGS") :]
    judgements = {}
    for number, word in re.findall(r"^(\d+)\. \(.*\) names the (\w+)$", prompt, re.MULTILINE):
        verdict = "detected" if f"The {word} is" in findings else "partial" if f"{word[:3]}~" in findings else "missed"
        judgements[f"{code}-{number}"] = {"verdict": verdict, "reason": f"looked for {word}"}
    penalties = [{"finding": "cheese", "certain": True}] * findings.count("cheese")
    return json.dumps({"judgements": judgements, "bonuses": [], "penalties": penalties})


def strict_judge(prompt: str) -> str:
    """A second opinion: half a finding is none."""
    return judge(prompt).replace('"partial"', '"missed"')


raters = (rb.ModelRater(judge, name="judge"), rb.ModelRater(strict_judge, name="strict judge"))
ROUNDS = {
    "plain": ({"finds": 4, "vague": 2}, "The prompt as it was."),
    "step by step": ({"finds": 6, "vague": 2}, "Asks for the reasons first."),
    "step by step, twice": ({"finds": 7, "vague": 1, "wrong": 1}, "Asks it to look a second time."),
}
folder = Path(tempfile.mkdtemp(prefix="two_prompts_"))
history = rb.History.load(folder / "history.md")
for name, (habits, notes) in ROUNDS.items():
    outputs = [rb.Output(document, review(document, run, **habits)) for document in KEYS for run in (0, 1)]
    rated = rb.rate(name, outputs, tests, raters)
    verdict = history.record(rb.Round(rated.variant, notes=notes))
    summary = rated.variant.summary
    print(
        f"\n{name}: mean {summary.mean:.2f}, SD {summary.sd:.2f} ({summary.stability}), gap {summary.cross_doc_gap:.2f}"
    )
    print(f"  the raters agree on {rated.agreement.observed:.0%}, kappa {rated.agreement.kappa:.2f}")
    if verdict is not None:
        evidence = verdict.evidence
        print(f"  {verdict.choice}: {verdict.reason}")
        assert evidence is not None
        print(f"  p = {evidence.p_value:.3f} over {evidence.pairs} pairs; further runs: {evidence.further_runs}")
history.save()
assert history.best is not None
print(f"\ngo on with {history.best.name!r}; converged: {history.converged}")
print(f"the rounds stand in {history.path}; grace-kp rubric history {history.path} --html report.html draws them")
