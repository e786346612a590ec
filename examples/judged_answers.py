"""Answers judged by a model, offline: a stand-in model reads the fenced prompt; the gate asks it before a mail goes out."""

import grace_kp as gk
from grace_kp.trace import EvaluationRecord


def model(prompt: str) -> str:
    """Plays a language model; `gk.GeminiJudge()` is a real one."""
    unsupported = "guaranteed" in prompt
    score, reason = (0.2, "nothing in the policy guarantees that") if unsupported else (0.9, "as the policy says")
    return f'{{"score": {score}, "reason": "{reason}", "coverage": 0.9, "coverage_reason": "all that was asked"}}'


# In the profile "grace" a judgement below 0.6 is left out, as its design says; in "strict" every judgement counts.
grace = gk.Grace(
    store="memory:", evaluator=model, reviewer=None, profile="strict", thresholds=gk.Thresholds(0.9, 0.8, 0.4)
)


def judged(evaluation: EvaluationRecord | None) -> str:
    judgement = evaluation.self_evaluation if evaluation else None
    return f"judged {judgement.score}: {judgement.reason}" if judgement else "not judged"


@grace.retriever
def policy(question: str) -> list[dict]:
    return [{"text": "Refunds take 5 to 7 days.", "score": 0.93, "source": "policy.md"}]


@grace.gate(judge="when_needed")
@grace.tool
def send_mail(to: str, text: str) -> str:
    return f"sent to {to}"


@grace.agent
def support(question: str, answer: str) -> str:
    policy(question)
    try:
        return f"{answer} ({send_mail('ann', answer)})"
    except gk.ActionCancelled as refused:
        return f"not sent: {refused}"


with grace.collect() as traces:
    support("When do I get my money back?", "In 5 to 7 days.")
    support("When do I get my money back?", "Within a day, guaranteed.")

for trace in traces:
    (decision,) = trace.decisions
    print(trace.outcome.result_summary)
    print(f"  before the gate: {decision.level} at {decision.score}, {judged(decision.evaluation)}")
    print(f"  at the end: confidence {trace.outcome.confidence}, {judged(trace.evaluation)}")
