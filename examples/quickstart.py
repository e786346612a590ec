"""An agent with a retriever and a tool that fails once: what is recorded, and which figures come of it."""

import grace_kp as gk

grace = gk.Grace(store="memory:")

SHELF = {
    "refunds.md": "Refunds are paid within 5 working days.",
    "returns.md": "Goods can be returned within 30 days, unused.",
}


@grace.retriever
def search(query: str) -> list[dict[str, object]]:
    words = set(query.lower().split())
    found = [
        {"text": text, "source": name, "score": round(len(words & set(text.lower().split())) / len(words), 2)}
        for name, text in SHELF.items()
    ]
    return sorted((hit for hit in found if hit["score"]), key=lambda hit: -float(str(hit["score"])))


@grace.tool
def read(name: str) -> str:
    return SHELF[name]


@grace.agent(domain="customer_service")
def support(question: str) -> str:
    hits = search(question)
    grace.thought(f"{len(hits)} documents look useful")
    try:
        return read("faq.md")
    except KeyError:
        return read(str(hits[0]["source"]))


def main() -> None:
    print("answer:", support("refunds paid within days"), "\n")
    trace = grace.store.query(limit=1)[0]
    for step in trace.steps:
        what = step.tool.name if step.tool else ""
        print(f"{step.step_id:>3} {step.type:<15} {what:<8} {step.input or step.content}")
    confidence = trace.confidence
    assert confidence is not None
    print("\nconfidence", trace.outcome.confidence, confidence.level, confidence.reason)
    for part, value in confidence.breakdown.items():
        print(f"  {part:18} {'not evaluated' if value is None else round(value, 3)}")
    print("score     ", round(trace.metadata.quality_score, 3), gk.ValueScorer().score(trace))


if __name__ == "__main__":
    main()
