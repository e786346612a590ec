"""Random runs and queries for tests of catalogs, and the straightforward answers."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from grace_kp.store import CatalogQuery
from grace_kp.store._query import searchable
from tests.store.samples import document

LEVELS = ("silent", "notify", "confirm", "escalate")
TIMES = (
    "1969-12-31T23:59:59.999Z", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z", "2026-01-01T23:59:59.999Z", "2026-02-03T04:05:06.789Z",
)  # fmt: skip
ORDINARY = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
USERS, TAGS, SCORERS = ("ana", "京子"), ("x", "本番"), ("quality", "形式")
TEXTS = st.text("aAbBßſ京都の天 \n\"'", max_size=12)


def at(number):
    return f"2026-01-01T00:00:{number:02d}.000Z"


def run(name, *, agent=None, domain="default", score=0.5, confidence=0.5, success=True, **fields):
    made = document(name, **fields)
    made["metadata"].update(task_domain=domain, quality_score=score, success=success)
    made["outcome"]["confidence"] = confidence
    made["grace"]["confidence"] = {"score": confidence}
    if agent is not None:
        made["grace"]["name"] = agent
    return made


def found(catalog, **conditions):
    return sorted(row.id.removeprefix("kp:trace:") for row in catalog.find(CatalogQuery(**conditions)).rows)


def judged(model, tokens, *, fallback=False):
    return {"calls": 1, "tokens": tokens, "self_evaluation": {"score": 0.5, "model": model, "fallback": fallback}}


@st.composite
def runs(draw):
    """A run with one of 12 ids; any but the run 0 may be nested in the run 0."""
    chance, number = st.booleans(), draw(st.integers(0, 11))
    fields = {
        "tags": draw(st.lists(st.sampled_from(TAGS), unique=True)),
        "decisions": [{"action": "send", "outcome": "executed", "level": level} for level in draw(st.lists(st.sampled_from(LEVELS), max_size=2))],
        "scores": [
            {"name": name, "score": 0.5, "passed": draw(st.sampled_from((True, False, None)))}
            for name in draw(st.lists(st.sampled_from(SCORERS), unique=True))
        ],
    }  # fmt: skip
    for field, values in (("user", USERS), ("session", ("s", "t"))):
        if draw(chance):
            fields[field] = draw(st.sampled_from(values))
    if number and draw(chance):
        fields["parent"] = {"trace_id": "kp:trace:0"}
    if draw(chance):
        fields["usage"] = {"input_tokens": 5, "output_tokens": 2}
    if draw(chance):
        fields["evaluation"] = judged(draw(st.sampled_from(("small", "large"))), 40, fallback=draw(chance))
    return run(
        number, agent=draw(st.sampled_from((None, "bot", "京都bot"))), domain=draw(st.sampled_from(("default", "code"))),
        score=draw(st.sampled_from((0, 0.25, 0.3, 1.0))), confidence=draw(st.sampled_from((0.0, 0.05, 0.5, 0.999, 1))), success=draw(chance),
        created_at=draw(st.sampled_from(TIMES)), text=draw(TEXTS), status=draw(st.sampled_from(("completed", "failed"))), **fields,
    )  # fmt: skip


def optional(*values):
    return st.one_of(st.none(), st.none(), st.sampled_from(values))


queries = st.builds(
    CatalogQuery,
    agent=optional("bot", "京都bot", "", "nobody"), domain=optional("default", "code"), status=optional("completed", "failed"),
    level=optional("none", *LEVELS), min_score=optional(0.25, 0.9), max_score=optional(0.3, 0.9), min_confidence=optional(0.05, 0.9),
    max_confidence=optional(0.05, 0.9), scorer=optional(*SCORERS), scorer_passed=optional(True, False),
    tags=st.lists(st.sampled_from(TAGS), max_size=2), user=optional(*USERS), session=optional("s"), since=optional(*TIMES), until=optional(*TIMES),
    text=st.one_of(st.none(), st.none(), TEXTS), feedback=optional(True, False), roots=st.booleans(),
)  # fmt: skip


def level_of(made):
    return max((entry["level"] for entry in made["grace"]["decisions"]), key=LEVELS.index, default="none")


def text_of(made):
    texts = [made["task"]["objective"], made["outcome"]["result_summary"], made["steps"][0]["content"]]
    return searchable("\n".join(texts))


def meets(made, labelled, query):
    grace, metadata, scores = made["grace"], made["metadata"], made["grace"]["scores"]
    scored = [entry for entry in scores if query.scorer in {None, entry["name"]}]
    if query.scorer_passed is not None:
        scored = [entry for entry in scored if entry["passed"] is query.scorer_passed]
    asks_for_scores = query.scorer is not None or query.scorer_passed is not None
    confidence = made["outcome"]["confidence"]
    return (
        query.agent in {None, grace.get("name", "")}
        and query.domain in {None, metadata["task_domain"]}
        and query.status in {None, grace["status"]}
        and query.level in {None, level_of(made)}
        and (query.min_score is None or metadata["quality_score"] >= query.min_score)
        and (query.max_score is None or metadata["quality_score"] <= query.max_score)
        and (query.min_confidence is None or confidence >= query.min_confidence)
        and (query.max_confidence is None or confidence <= query.max_confidence)
        and (not asks_for_scores or bool(scored))
        and set(query.tags) <= set(grace["tags"])
        and query.user in {None, grace.get("user")}
        and query.session in {None, grace.get("session")}
        and (query.since is None or metadata["created_at"] >= query.since)
        and (query.until is None or metadata["created_at"] <= query.until)
        and (not query.text or searchable(query.text) in text_of(made))
        and (query.feedback is None or (made["id"] in labelled) is query.feedback)
        and (not query.roots or "parent" not in grace)
    )


def pages(catalog, query, limit=2):
    page = catalog.find(query, limit=limit)
    assert page.newer is None
    found = [page]
    while found[-1].older is not None:
        found.append(catalog.find(query, limit=limit, before=found[-1].older))
    back = [found[-1]]
    while back[-1].newer is not None:
        back.append(catalog.find(query, limit=limit, after=back[-1].newer))
    rows = [row for page in found for row in page.rows]
    assert [row.position for row in rows] == [row.position for page in reversed(back) for row in page.rows]
    return rows


def figures(documents, first, last):
    made = [item for item in documents if first <= item["metadata"]["created_at"][:10] <= last]
    confidences = [item["outcome"]["confidence"] for item in made]
    evaluations = [item["grace"]["evaluation"] for item in made if "evaluation" in item["grace"]]
    models = {}
    for evaluation in evaluations:
        part = evaluation["self_evaluation"]
        calls, tokens, fallbacks = models.get(part["model"], (0, 0, 0))
        models[part["model"]] = (calls + 1, tokens + evaluation["tokens"], fallbacks + part["fallback"])
    levels = Counter(entry["level"] for item in made for entry in item["grace"]["decisions"])
    return {
        "runs": len(made),
        "failed": sum(not item["metadata"]["success"] for item in made),
        "score": round(sum(item["metadata"]["quality_score"] for item in made), 6),
        "confidence": round(sum(confidences), 6),
        "tokens": sum(sum(item["grace"].get("usage", {}).values()) for item in made),
        "judge_calls": len(evaluations),
        "agents": dict(Counter(item["grace"].get("name", "") for item in made)),
        "days": dict(Counter(item["metadata"]["created_at"][:10] for item in made)),
        "statuses": dict(Counter(item["grace"]["status"] for item in made)),
        "confidence bins": dict(Counter(min(19, int(value * 20)) for value in confidences)),
        "score bins": dict(Counter(min(19, int(item["metadata"]["quality_score"] * 20)) for item in made)),
        "levels": {level: levels[level] for level in LEVELS},
        "models": models,
    }


def plain(found):
    return {
        "runs": found.total.runs,
        "failed": found.total.failed,
        "score": round(found.total.score, 6),
        "confidence": round(found.total.confidence, 6),
        "tokens": found.total.tokens,
        "judge_calls": found.total.judge_calls,
        "agents": {group.name: group.runs for group in found.agents},
        "days": {group.name: group.runs for group in found.days if group.runs},
        "statuses": dict(found.statuses),
        "confidence bins": {number: count for number, count in enumerate(found.confidence) if count},
        "score bins": {number: count for number, count in enumerate(found.scores) if count},
        "levels": dict(found.levels),
        "models": dict(found.models),
    }
