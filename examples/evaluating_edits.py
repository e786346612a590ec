"""Evaluating an editing agent, offline: two versions of it over the same cases, what is wrong with the first, and both on recorded runs."""

import re

import grace_kp as gk
from grace_kp import scorers as sc

DOCUMENT = [sc.Block("title", "Invoice 17"), sc.Block("total", "Total: 40 EUR"), sc.Block("note", "Draft, do not send")]

# What each request should lead to. Nothing that is not asked for may change.
CASES = {
    "Raise the total to 45 EUR": sc.EditExpectation(
        [sc.Operation("update", "total", content="Total: 45 EUR")], patterns={"Invoice": [r"total: 45"]}
    ),
    "Remove the note": sc.EditExpectation([sc.Operation("delete", "note")], patterns={"Invoice": ["invoice 17"]}),
    "Add 'Thank you' after the total": sc.EditExpectation(
        [sc.Operation("insert", "total", position="after", content="Thank you")],
        patterns={"Invoice": ["thank you|thanks"]},
    ),
}


def first_version(request: str) -> list[sc.Operation]:
    """Plays a model: it appends where it should insert, and tidies up unasked."""
    if request.startswith("Raise"):
        return [sc.Operation("update", "total", content="Total: 45 EUR"), sc.Operation("delete", "note")]
    if request.startswith("Remove"):
        return [sc.Operation("delete", "note")]
    return [sc.Operation("append", "total", content="Thank you")]


def second_version(request: str) -> list[sc.Operation]:
    """Does one thing, and the one that was asked for."""
    if request.startswith("Raise"):
        sum_ = re.search(r"\d+", request)
        return [sc.Operation("update", "total", content=f"Total: {sum_[0] if sum_ else '?'} EUR")]
    if request.startswith("Remove"):
        return [sc.Operation("delete", "note")]
    return [sc.Operation("insert", "total", position="after", content="Thank you")]


def applied(operations: list[sc.Operation]) -> sc.EditResult:
    """What comes of the document, and which operations could be applied at all."""
    blocks, flags = list(DOCUMENT), []
    for number, one in enumerate(operations):
        place = next((place for place, block in enumerate(blocks) if block.id == one.target_block_id), None)
        flags.append(place is not None and one.type in {"update", "delete", "insert"})
        if place is None or not flags[-1]:
            continue
        if one.type == "delete":
            del blocks[place]
        elif one.type == "update":
            blocks[place] = sc.Block(blocks[place].id, one.content or "")
        else:
            blocks.insert(place + 1, sc.Block(f"new-{number}", one.content or ""))
    text = " / ".join(block.content for block in blocks)
    return sc.EditResult(operations, flags, DOCUMENT, blocks, {"Invoice": text})


suite = sc.Suite.preset("strict")
for name, agent in (("first version", first_version), ("second version", second_version)):
    print(f"== {name}")
    for request, expected in CASES.items():
        report = suite.evaluate(applied(agent(request)), expected)
        print(f"{'passes' if report.passed else 'fails '}  {report.overall:.2f}  {request}")
        for line in report.diagnosis:
            print(f"          {line}")

# Scorers look at recorded runs by themselves, too: their scores are in the traces, and runs can be found by them.
scorer = sc.OnTraces(sc.OperationAccuracy(), CASES, target="block")
grace = gk.Grace(store="memory:", evaluator=None, embedder=None, scorers=scorer)


@grace.tool
def update(block: str, content: str) -> str:
    return "ok"


@grace.tool
def delete(block: str) -> str:
    return "ok"


for request in ("Raise the total to 45 EUR", "Remove the note"):
    with grace.run(request):
        if request.startswith("Raise"):
            update("total", "Total: 45 EUR")
        else:
            delete("title")  # the wrong one

print("== recorded runs in which something else was done than was asked for")
for trace in grace.store.query(scorer="operation-accuracy", scorer_passed=False):
    print(f"{trace.task.objective}: {trace.scores[0].diagnosis[1].strip()}")
