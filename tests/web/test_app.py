"""The application and what its pages share: who may make one, its start and end, templates, parameters of addresses, programs of empty pages, errors."""

from __future__ import annotations

import math
import threading
from dataclasses import fields
from datetime import date
from types import SimpleNamespace
from typing import Annotated, Literal, get_args

import pytest
from markupsafe import Markup
from pydantic import Field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.testclient import TestClient

import grace_kp as gk
from grace_kp import Grace, errors
from grace_kp.errors import SettingsError, StoreError
from grace_kp.levels import InterventionLevel
from grace_kp.store import CatalogQuery
from grace_kp.web import Person, Role, _site, app
from grace_kp.web._app import SCRIPTS, CatalogFollower, _static_routes
from grace_kp.web._errors import http_problem, problem_of, status_of
from grace_kp.web._parameter import (
    AT_MOST_VALUES,
    UNSTATED,
    Day,
    Parameters,
    RunConditions,
    Share,
    Text,
    Time,
)
from grace_kp.web._site import (
    FRESH_SECONDS,
    ValueCache,
    asking_lines,
    path_of,
    recording_lines,
    root_of,
    route,
    templates,
    when,
)
from tests.web.visiting import PATIENCE, Browser


@pytest.mark.parametrize("auth", [None, "ana", Person(name="ana", role=Role.ADMIN)])
def test_a_mounted_application_needs_auth(grace, auth):
    """Without it everybody or nobody would be an admin; the message names it."""
    with pytest.raises(SettingsError, match=r"app\(\) needs auth=: a function from the request"):
        app(grace, auth=auth)


async def test_the_catalog_follows_the_store_from_the_first_request():
    async def answer(scope, receive, send):
        answered.append(scope["type"])

    calls, answered = [], []
    catalog = SimpleNamespace(follow=lambda: calls.append("follow"), close=lambda: calls.append("close"))
    following = CatalogFollower(catalog)
    application = following.before(answer)
    for kind in ("lifespan", "http", "http"):
        assert ["follow"] * ("http" in answered) == calls
        await application({"type": kind}, None, None)
    async with following.lifespan(None):
        assert ["follow"] == calls
    assert ["follow", "close"] == calls


@pytest.fixture
def client():
    return TestClient(Starlette(routes=_static_routes()))


@pytest.mark.parametrize("name", ["site.css", *SCRIPTS])
def test_a_file_is_sent_until_the_browser_has_it(client, name):
    first = client.get(f"/static/{name}")
    assert 200 == first.status_code
    assert {"css": "text/css", "js": "text/javascript"}[name.partition(".")[2]] in first.headers["content-type"]
    assert "no-cache" == first.headers["cache-control"]
    again = client.get(f"/static/{name}", headers={"If-None-Match": first.headers["etag"]})
    assert (304, b"") == (again.status_code, again.content)
    assert 200 == client.get(f"/static/{name}", headers={"If-None-Match": '"other"'}).status_code


def test_a_role_is_one_of_the_known():
    assert Role.ADMIN is Person(name="ana", role="admin").role
    for role in ("root", "", None):
        with pytest.raises(ValueError, match="is not a valid Role"):
            Person(name="ana", role=role)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.UnknownApproval("x"), 404, "unknown_approval"),
        (errors.UnknownTrace("x"), 404, "unknown_run"),
        (errors.AlreadyDecided("x"), 409, "already_decided"),
        (errors.ChangedSinceShown("x"), 409, "changed_since_shown"),
        (errors.EditRefused("x"), 422, "edit_refused"),
        (errors.ApprovalError("x"), 422, "invalid"),
        (ValueError("x"), 422, "invalid"),
        (RuntimeError("x"), 500, "internal"),
    ],
)
def test_errors_have_a_status_and_a_code(error, status, code):
    problem = problem_of(error)
    assert (status, status) == (status_of(error), problem.status)
    assert {"code": code, "message": "x"} == problem.document
    assert status == http_problem(status, "x").status
    assert (418, "bad_request") == (status_of(HTTPException(418)), http_problem(418, "x").code)


@pytest.fixture
def broken(tmp_path):
    """Returns the response of a page, or of the API, whose handler raises an error."""
    from grace_kp.web import Right

    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as grace:
        browser = Browser(grace)

        def response(error, path="/broken"):
            def handler(request):
                raise error

            browser.app.router.routes.insert(0, route(path, handler, Right.SEE))
            return browser.get(path)

        yield response
        browser.app.state.site.catalog.close()


@pytest.mark.parametrize("path", ["/broken", "/api/broken"])
def test_what_a_store_says_stays_in_the_log(broken, caplog, path):
    response = broken(errors.StoreError("store /secret/place.db: it is locked"), path)
    assert 503 == response.status_code
    assert "cannot be read or written" in response.text
    assert "place" not in response.text
    assert "place.db: it is locked" in caplog.text


def test_an_error_of_ours_is_a_page(broken):
    response = broken(errors.AlreadyDecided("<b>ben</b>\u202e was faster"))
    assert 409 == response.status_code
    assert "&lt;b&gt;ben&lt;/b&gt;" in response.text
    assert "\u202e" not in response.text
    assert "Nothing was changed" in response.text


@pytest.mark.parametrize("path", ["/broken", "/api/broken"])
def test_an_unexpected_error_tells_nothing(broken, path, caplog):
    response = broken(ZeroDivisionError("a secret of line 7"), path)
    assert 500 == response.status_code
    assert "The server failed. Its log has the reason." in response.text
    for told in ("ZeroDivisionError", "secret", "Traceback", ".py"):
        assert told not in response.text
    assert "ZeroDivisionError: a secret of line 7" in caplog.text


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/inbox", "", ("/inbox", "")),
        ("/grace/inbox", "/grace", ("/inbox", "/grace")),
        ("/grace", "/grace", ("", "/grace")),
        ("/gracefully", "/grace", ("/gracefully", "/grace")),
        ("/inbox", "/", ("/inbox", "")),
    ],
)
def test_the_path_is_split_at_the_mount(path, root, expected):
    scope = {"type": "http", "path": path, "root_path": root, "headers": []}
    assert expected == (path_of(scope), root_of(Request(scope)))


@pytest.fixture(scope="module")
def render():
    look = templates()
    return lambda text, **values: look.from_string(text).render(**values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<script>", "&lt;script&gt;"),
        ('" onclick="x', "&#34; onclick=&#34;x"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\x00\x1b[31mb", "a⟨U+0000⟩⟨U+001B⟩[31mb"),
        (None, ""),
        (Markup("<b>ours</b>"), "<b>ours</b>"),
    ],
)
def test_what_is_shown_is_escaped_and_visible(render, value, expected):
    assert expected == render("{{ value }}", value=value)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, '<time datetime="1970-01-01T00:00:00.000Z">1970-01-01 00:00:00 UTC</time>'),
        (1_764_104_400.5, '<time datetime="2025-11-25T21:00:00.500Z">2025-11-25 21:00:00 UTC</time>'),
        (None, "never"),
        (math.nan, "never"),
        (1e30, "never"),
    ],
)
def test_a_time_is_in_utc_and_for_scripts(seconds, expected):
    assert expected == when(seconds)


def test_the_first_records_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    lines = recording_lines("sqlite:////secret/place.db")
    assert "secret" not in lines  # a viewer must not learn the path of the store
    assert "store=" not in recording_lines(None)
    exec(lines, names)
    try:
        assert names["grace"].flush()
        assert ["When do I get my money back?"] == [trace.task.objective for trace in names["grace"].store.query()]
    finally:
        names["grace"].close()


def test_the_second_waits_for_a_decision(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    asking = threading.Thread(target=exec, args=(asking_lines("sqlite:///app.db"), names))
    with gk.Grace(store="sqlite:///app.db", evaluator=None, embedder=None) as other:
        changes = other.approvals.watch()
        asking.start()
        other.approvals.approve(next(iter(changes)).approval, by="ana")
    asking.join(300)
    names["grace"].close()
    assert "paid back 40 euros for A-17" in capsys.readouterr().out


def test_readers_do_not_wait_for_a_long_computation(monkeypatch):
    """The first reader gets no value, later ones the previous one, until the background thread has computed it."""
    kept, may_end = ValueCache(), threading.Event()

    def compute():
        may_end.wait(PATIENCE)
        return "computed"

    monkeypatch.setattr(_site, "PATIENCE", 0)
    assert kept.get("key", 0.0, compute) is None
    assert kept.get("key", 0.0, compute) is None
    may_end.set()
    monkeypatch.setattr(_site, "PATIENCE", PATIENCE)
    assert "computed" == kept.get("key", 0.0, compute).value
    may_end.clear()
    assert "computed" == kept.get("key", FRESH_SECONDS, compute).value
    may_end.set()


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (StoreError("no such file: /secret/place.db"), "the store cannot be read or written at the moment"),
        (KeyError("/secret/place.db"), "the computation failed. The log of the server has the reason"),
    ],
)
def test_a_computation_that_fails_is_a_problem_of_the_value(caplog, error, problem):
    def fail():
        raise error

    kept = ValueCache()
    assert (None, problem) == (kept.get("key", 0.0, fail).value, kept.get("key", 0.0, fail).problem)
    assert "place.db" in caplog.text


class Example(Parameters):
    """One of each kind."""

    text: str = Field(UNSTATED, min_length=1, max_length=5)
    number: Share = UNSTATED
    flag: bool = UNSTATED
    time: Time = UNSTATED
    day: Day = UNSTATED
    choice: Literal["a", "b"] = UNSTATED
    many: tuple[Text, ...] = Field(UNSTATED, max_length=AT_MOST_VALUES)
    limit: Annotated[int, Field(ge=0, le=100)] = 50


def read(name, stated):
    """The values and problems of an address that states one parameter."""
    return Example.read([(name, value) for value in stated])


@pytest.mark.parametrize(
    ("parameter", "stated", "expected"),
    [
        ("text", ["日本語"], "日本語"),
        ("number", ["0.25"], 0.25),
        ("limit", ["100"], 100),
        ("flag", ["false"], False),
        ("time", ["2026-01-02"], "2026-01-02T00:00:00.000Z"),
        ("time", ["2026-01-02T03:04:05+09:00"], "2026-01-01T18:04:05.000Z"),
        ("day", ["2026-01-02"], date(2026, 1, 2)),
        ("choice", ["b"], "b"),
        ("many", ["x", "y"], ("x", "y")),
    ],
)
def test_values(parameter, stated, expected):
    values, problems = read(parameter, stated)
    assert (expected, {}) == (values[parameter], problems)


@pytest.mark.parametrize(
    ("parameter", "stated", "reason"),
    [
        ("text", ["a" * 6], "string should have at most 5 characters, not 'aaaaaa'"),
        ("text", ["a", "b"], "input should be a valid string, not a list of 2"),
        ("number", ["1e999"], "input should be less than or equal to 1, not '1e999'"),
        ("flag", ["perhaps"], "not 'perhaps'"),
        ("time", ["2026-02-31"], "it must be a time like 2026-01-02T03:04:05Z or 2h, not '2026-02-31'"),
        ("day", ["2026-04-31"], "day is out of range for month, not '2026-04-31'"),
        ("choice", ["c"], "input should be 'a' or 'b', not 'c'"),
        ("many", ["x"] * 21, "at most 20 items after validation, not 21"),
    ],
)
def test_refusals(parameter, stated, reason):
    values, problems = read(parameter, stated)
    assert (50, [parameter]) == (values["limit"], list(problems))
    assert problems[parameter].startswith("cannot be used: ")
    assert reason in problems[parameter]


def test_all_parameters_are_read_at_once():
    values, problems = Example.read([("number", "2"), ("choice", "a"), ("other", "x"), ("time", "1d")])
    assert ({"limit", "choice", "time"}, "a") == (set(values), values["choice"])
    assert values["time"] < read("time", ["1h"])[0]["time"]
    known = "text, number, flag, time, day, choice, many, limit"
    assert {"number", "other"} == set(problems)
    assert f"is unknown; known are {known}" == problems["other"]


def test_each_field_of_a_query_is_a_condition():
    assert [field.name for field in fields(CatalogQuery)] == list(RunConditions.model_fields)
    assert (*InterventionLevel, "none") == get_args(RunConditions.model_fields["level"].annotation)
