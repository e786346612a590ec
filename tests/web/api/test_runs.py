"""Operations on runs, labels and figures, and the health check."""

from __future__ import annotations

import asyncio
import threading

import anyio.to_thread
import httpx
import pytest

from grace_kp import Grace
from grace_kp.approvals import approval_figures
from grace_kp.errors import StoreError
from grace_kp.trace import ReasoningTrace
from grace_kp.web import app
from grace_kp.web.figures import _figures
from tests.store.samples import document, put

UNKNOWN = "kp:trace:00000000-0000-0000-0000-000000000000"


def ids(response):
    assert 200 == response.status_code, response.text
    return [row["id"] for row in response.json()["rows"]]


def test_runs_are_listed_newest_first_and_by_page(house, ana):
    recorded = [house.record("refunds", f"task {number}") for number in range(5)]
    house.index()
    first = ana.get("/api/v1/runs", params={"limit": 2}).json()
    assert recorded[:2:-1] == [row["id"] for row in first["rows"]]
    assert (None, None) == (first["newer"], first["searched_to"])
    second = ana.get("/api/v1/runs", params={"limit": 2, "before": first["older"]}).json()
    assert recorded[2:0:-1] == [row["id"] for row in second["rows"]]
    back = ana.get("/api/v1/runs", params={"limit": 2, "after": second["newer"]})
    assert recorded[:2:-1] == ids(back)


def test_runs_are_found_by_condition(house, ana):
    refund = house.record("refunds", "返金 R-17", tags=["a", "b"], user="u1")
    search = house.record("search", "find", domain="research", tags=["a"])
    house.index()
    assert [refund] == ids(ana.get("/api/v1/runs", params={"agent": "refunds"}))
    assert [search] == ids(ana.get("/api/v1/runs", params={"domain": "research"}))
    assert [search, refund] == ids(ana.get("/api/v1/runs?tags=a"))
    assert [refund] == ids(ana.get("/api/v1/runs?tags=a&tags=b"))
    assert [refund] == ids(ana.get("/api/v1/runs", params={"text": "返金", "user": "u1", "level": "none"}))
    assert [] == ids(ana.get("/api/v1/runs", params={"agent": "refunds", "domain": "research"}))


def test_a_run_is_the_stored_document(house, ana):
    """What the API returns reads as the trace in the store; whatever its texts hold, it is UTF-8."""
    run = house.record("refunds", "hostile \ud800 \u202e <script>")
    response = ana.get(f"/api/v1/runs/{run}")
    assert "application/json" == response.headers["content-type"]
    assert "nosniff" == response.headers["x-content-type-options"]
    response.content.decode("utf-8")
    assert house.grace.store.get(run) == ReasoningTrace.model_validate(response.json())


def test_labels_are_added_and_listed(house, ana):
    run = house.record("refunds")
    assert {"trace": run, "feedback": []} == ana.get(f"/api/v1/runs/{run}/feedback").json()
    added = ana.post(f"/api/v1/runs/{run}/feedback", json={"correct": 0.5, "note": "half"})
    assert 201 == added.status_code
    (label,) = added.json()["feedback"]
    assert (0.5, "user", "ana", "half") == tuple(label[name] for name in ("correct", "source", "by", "note"))
    by_program = house.client("bot").post(f"/api/v1/runs/{run}/feedback", json={"correct": True, "source": "test"})
    assert [("ana", 0.5), ("bot", True)] == [(each["by"], each["correct"]) for each in by_program.json()["feedback"]]
    assert by_program.json() == ana.get(f"/api/v1/runs/{run}/feedback").json()


@pytest.mark.parametrize("source", ["person", "audit", "seeded", "REVIEWER"])
def test_a_program_states_no_source_of_people(house, source):
    run = house.record("refunds")
    body = {"correct": True, "source": source, "probability": 1}
    refused = house.client("bot").post(f"/api/v1/runs/{run}/feedback", json=body)
    assert (403, "forbidden") == (refused.status_code, refused.json()["code"])
    assert "reserved for people" in refused.json()["message"]
    added = house.client("ana").post(f"/api/v1/runs/{run}/feedback", json=body)
    assert [("ana", source, None)] == [
        (each["by"], each["source"], each.get("program")) for each in added.json()["feedback"]
    ]


def test_a_program_labels_under_its_own_name_and_for_this_run_alone(house):
    """It cannot set the name or the mark, and its label does not stand for other runs."""
    run, bot = house.record("refunds"), house.client("bot")
    address = f"/api/v1/runs/{run}/feedback"
    for field, value, status in (("by", "ana", 422), ("program", False, 422), ("probability", 0.05, 403)):
        assert status == bot.post(address, json={"correct": True, field: value}).status_code
    (label,) = bot.post(address, json={"correct": True, "probability": 1}).json()["feedback"]
    assert ("bot", True) == (label["by"], label["program"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"correct": "yes"}, "correct"),
        ({"correct": True, "source": "a b"}, "source"),
        ({"correct": True, "by": "somebody else"}, "by"),
        ({"correct": True, "probability": 0}, "probability"),
        ({"correct": True, "source": "audit"}, ""),
    ],
)
def test_a_label_that_cannot_be_used_is_refused(house, ana, body, field):
    run = house.record("refunds")
    refused = ana.post(f"/api/v1/runs/{run}/feedback", json=body)
    assert (422, "invalid") == (refused.status_code, refused.json()["code"])
    fields = dict.fromkeys(name.partition(".")[0] for name in refused.json().get("fields", ()))
    assert [field] * bool(field) == list(fields)


def test_an_unknown_run(ana):
    for response in (
        ana.get(f"/api/v1/runs/{UNKNOWN}"),
        ana.post(f"/api/v1/runs/{UNKNOWN}/feedback", json={"correct": True}),
    ):
        assert (404, "unknown_run") == (response.status_code, response.json()["code"])


async def test_health_is_stated_while_all_other_threads_wait(tmp_path):
    """As they do while a host application that is asked who sends the requests does not answer."""
    asked, answers = threading.Semaphore(0), threading.Event()

    def auth(request):
        asked.release()
        answers.wait(300)

    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as grace:
        pages = app(grace, auth=auth)
        threads = int(anyio.to_thread.current_default_thread_limiter().total_tokens)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(pages), base_url="http://localhost") as client:
            try:
                waiting = [asyncio.create_task(client.get("/inbox")) for _ in range(threads + 5)]
                for _ in range(threads):
                    await asyncio.get_running_loop().run_in_executor(None, asked.acquire)
                response = await asyncio.wait_for(client.get("/healthz"), 60)
                assert (200, {"status": "ok"}) == (response.status_code, response.json())
            finally:
                answers.set()
                await asyncio.gather(*waiting)
        pages.state.site.catalog.close()


def test_the_figures_of_a_period(house, ana):
    house.record("refunds")
    house.record("search")
    house.index()
    figures = ana.get("/api/v1/figures").json()
    assert (2, 30) == (figures["runs"]["total"]["runs"], len(figures["runs"]["days"]))
    assert {"refunds", "search"} == {each["name"] for each in figures["runs"]["agents"]}
    assert {"silent": 0.9, "notify": 0.7, "confirm": 0.4} == figures["thresholds"]
    assert [] == figures["spending"]
    one = ana.get("/api/v1/figures", params={"agent": "refunds"}).json()
    assert ("refunds", 1) == (one["agent"], one["runs"]["total"]["runs"])
    past = ana.get("/api/v1/figures", params={"since": "2020-01-01", "until": "2020-01-02"}).json()
    assert (0, 2) == (past["runs"]["total"]["runs"], len(past["runs"]["days"]))


def test_decisions_are_read_once_a_minute(house, ana, monkeypatch):
    read = []

    def figures(*query):
        read.append(query)
        return approval_figures(*query)

    monkeypatch.setattr(_figures, "approval_figures", figures)
    ana.post(f"/api/v1/approvals/{house.request().id}/reject", json={})
    approvals = ana.get("/api/v1/figures").json()["approvals"]
    assert (0, {"rejected": 1}, 1) == (approvals["pending"], approvals["outcomes"], len(approvals["waits"]))
    house.request(arguments={"invoice": "R-2", "euros": 1})
    assert 1 == ana.get("/api/v1/figures").json()["approvals"]["pending"]
    assert 200 == ana.get("/figures").status_code
    assert 1 == len(read)


@pytest.mark.parametrize(("message", "words"), [("", "being computed"), ("locked: /secret/place.db", "cannot be read")])
def test_figures_that_are_not_there_yet(house, ana, monkeypatch, message, words):

    def figures(*_):
        raise StoreError(message)

    monkeypatch.setattr(_figures, "approval_figures", figures)
    if not message:  # another reader has them computed
        monkeypatch.setattr("grace_kp.web._site.PATIENCE", 0)
        house.app.state.site.figures._computing.acquire()
    answer = ana.get("/api/v1/figures")
    assert (503, "unavailable") == (answer.status_code, answer.json()["code"])
    assert words in answer.json()["message"]


@pytest.mark.parametrize(
    ("period", "field", "problem"),
    [
        ({"since": "2026-01-02", "until": "2026-01-01"}, "since", "must not be after until: 2026-01-02 is after 2026-01-01"),
        ({"since": "1001-01-01"}, "since", "or later: a period has at most 7,320 days"),
        ({"until": "2999-01-01"}, "until", "(today in UTC) or earlier, not 2999-01-01"),
        ({"since": "2h"}, "since", "cannot be used"),
        ({"days": "30"}, "days", "is unknown; known are agent, since, until"),
    ],
)  # fmt: skip
def test_a_period_that_cannot_be_used(ana, period, field, problem):
    """It is refused with the field and the days that are allowed; presets are the page's."""
    refused = ana.get("/api/v1/figures", params=period)
    assert problem in refused.json()["message"]
    assert (422, "invalid", [field]) == (refused.status_code, refused.json()["code"], list(refused.json()["fields"]))


def test_an_action_is_labelled_like_a_run(house, ana):
    """By id or number; its labels are listed apart from those of the run. An unknown action is not found."""
    store = house.grace.store
    decisions = [{"id": name, "action": "pay", "outcome": "executed"} for name in ("a", "b")]
    put(store, document("paid", decisions=decisions))
    address = "/api/v1/runs/kp:trace:paid/feedback"
    added = ana.post(address, json={"correct": False, "action": "b"})
    assert (201, []) == (added.status_code, added.json()["feedback"])
    by_program = house.client("bot").post(address, json={"correct": True, "action": "1", "source": "test"}).json()
    assert [("b", "ana", None), ("a", "bot", True)] == [
        (each["action"], each["by"], each.get("program")) for each in by_program["action_feedback"]
    ]
    assert by_program == ana.get(address).json()
    refused = ana.post(address, json={"correct": False, "action": "c"})
    assert (404, "unknown_action") == (refused.status_code, refused.json()["code"])
    assert "1 pay (a), 2 pay (b)" in refused.json()["message"]
