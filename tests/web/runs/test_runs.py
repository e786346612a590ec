"""The pages of runs: the list with its filters, one run with its views, search and labels, and two runs side by side."""

from __future__ import annotations

import contextlib
import html
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.pages import safe, visible
from grace_kp.store import Progress, RunPage
from grace_kp.trace import ReasoningTrace
from grace_kp.web.runs._compare import align_steps
from grace_kp.web.runs._run import links_from, mark_matches, matching_steps, run_address
from tests.pages.reading import Elements
from tests.trace.html.traces import attacked, check, documents, full
from tests.web.conftest import thoughts


def objectives(page):
    return re.findall(r'<a class="objective" href="[^"]*">([^<]*)</a>', page)


def fill(house):
    for place in range(3):
        run = thoughts(place + 1)
        run["task"]["objective"] = f"Objective {place}"
        house.add(
            place, run, began=f"2026-01-0{place + 1}T00:00:00.000Z", status="failed" if place == 1 else "completed"
        )


def test_runs_stand_newest_first(house):
    fill(house)
    house.add("full", began="2026-01-09T00:00:00.000Z")
    page = house.visit().get("/runs").text
    assert ["Refund the order", "Objective 2", "Objective 1", "Objective 0"] == objectives(page)
    text = Elements(page).text
    for words in ("support", "completed", "confirm", "0.62", "1 min 10 s", "3,104", "vip", "2026-01-09 00:00:00 UTC"):
        assert words in text
    assert 'value="0.5"' in page
    assert 'value="0.5"' not in house.visit(role="viewer").get("/runs").text
    house.add("hostile", attacked())
    browser = house.visit()
    check(browser.get("/runs").text.replace("<!doctype html>", ""))
    browser.post_form("/runs/kp:trace:0/feedback", {"correct": "1"})
    assert '<span class="badge">labelled</span>' in house.visit().get("/runs").text


def test_a_filter_lives_in_the_address(house):
    fill(house)
    browser = house.visit()
    answer = browser.get("/runs?agent=&status=failed&text=&min_score=")
    assert (303, "/runs?status=failed") == (answer.status_code, answer.headers["location"])
    assert ["Objective 1"] == objectives(browser.get("/runs?status=failed").text)
    assert 303 == browser.get("/runs?status=").status_code
    page = browser.get("/runs?status=gone").text  # a value that occurs no more stays selected
    assert '<option value="gone" selected>gone</option>' in page
    assert '<option value="failed">failed</option>' in page
    links = Elements(browser.get("/runs?tags=x&tags=y%26z&scorer_passed=false").text).links
    assert {"/runs?tags=x&scorer_passed=false", "/runs?tags=x&tags=y%26z"} <= set(links)


def test_a_wrong_value_is_noted_at_its_field(house):
    fill(house)
    answer = house.visit().get("/runs?min_score=3&status=failed")
    assert 422 == answer.status_code
    found = Elements(answer.text)
    assert "should be less than or equal to 1" in found.text
    field = next(attributes for _, attributes in found.elements if attributes.get("id") == "f-min_score")
    assert ("true", "p-min_score") == (field["aria-invalid"], field["aria-describedby"].strip())
    assert ["Objective 1"] == objectives(answer.text)
    assert "/runs?status=failed" not in found.links
    assert "/runs" in found.links


def test_pages_follow_each_other(house):
    for place in range(120):
        house.add(
            f"{place:03}", thoughts(1, status="completed"), began=f"2026-01-02T00:{place // 60:02}:{place % 60:02}.000Z"
        )
    browser = house.visit()
    seen, address = [], "/runs?status=completed"
    while address:
        page = browser.get(address).text
        seen += re.findall(r'name="id" value="([^"]*)"', page)
        address = next(iter(re.findall(r'rel="next" href="([^"]*)"', page)), "").replace("&amp;", "&")
        last = page
    assert [f"kp:trace:{place:03}" for place in reversed(range(120))] == seen
    newer = re.search(r'rel="prev" href="([^"]*)"', last)[1].replace("&amp;", "&")
    assert "status=completed" in newer
    assert seen[50:100] == re.findall(r'name="id" value="([^"]*)"', browser.get(newer).text)
    assert 200 == browser.get("/runs?before=soon").status_code


def test_an_empty_store_says_how_to_record(house):
    page = house.visit().get("/runs").text
    assert "No runs yet" in page
    assert house.grace.settings.store.removeprefix("sqlite:///") not in page
    assert "# the store of this server" in page
    assert "@grace.agent" in page


def test_no_match_says_what_to_remove(house):
    fill(house)
    text = Elements(house.visit().get("/runs?status=failed&text=nothing+like+it").text).text
    assert "No run meets all filters" in text
    assert "without contains nothing like it" in " ".join(text.split())


def test_a_search_that_ran_out_of_time_can_go_on(house):
    """Also while the catalog is still being built."""
    browser = house.visit()
    site = browser.app.state.site
    site.catalog.close()
    found = RunPage(rows=(), newer=None, older=7, searched_to="2026-01-02T03:04:05.000Z")
    slow = SimpleNamespace(
        find=lambda query, **options: replace(found, newer=9 if "after" in options else None),
        progress=lambda: Progress(done=10, total=1_000),
        names=lambda kind: [],
        close=lambda: None,
    )
    object.__setattr__(site, "catalog", slow)
    page = browser.get("/runs?text=needle").text
    text = " ".join(Elements(page).text.split())
    assert "The search stopped at 2026-01-02 03:04:05 UTC" in text
    assert "/runs?text=needle&before=7" in Elements(page).links
    assert "/runs?text=needle&after=9" in Elements(browser.get("/runs?text=needle&after=3").text).links
    assert "it has 10 of 1,000 runs" in text
    assert "No run meets" not in text


VIEWS = ("timeline", "tree", "waterfall", "json")


def test_a_run_has_four_views(house):
    name = house.add("a")
    browser = house.visit()
    for view, words in zip(VIEWS, ("Recovered from lookup", "result ", "began after", "@context"), strict=True):
        text = Elements(browser.get(f"/runs/{name}?view={view}").text).text
        assert words in text
        assert "0.620" in text
        assert ("/static/runs.js" in Elements(browser.get(f"/runs/{name}?view={view}").text).links) is (
            view == "timeline"
        )
    assert "Recovered from lookup" in browser.get(f"/runs/{name}?view=none").text


def test_pages_of_runs_are_linked(house):
    house.add("2", thoughts(1, status="completed", parent={"trace_id": "kp:trace:1"}))
    run = full()
    run["grace"]["decisions"][0]["approval"] = {"id": "kp:approval:7", "state": "executed"}
    house.add("1", run)
    browser = house.visit()
    assert {"/runs/kp:trace:2", "/approvals/kp:approval:7"} <= set(Elements(browser.get("/runs/kp:trace:1").text).links)
    assert "/runs/kp:trace:1" in Elements(browser.get("/runs/kp:trace:2").text).links
    assert "thought 0." in browser.get("/runs/kp:trace:1?view=tree").text


def test_a_download_holds_the_trace(house):
    name = house.add('a"b;c')
    answer = house.visit().get(f"/runs/{name}/json")
    assert 'attachment; filename="run-a-b-c.json"' == answer.headers["content-disposition"]
    assert house.grace.store.get(name).to_json() == answer.text
    assert name == ReasoningTrace.model_validate(json.loads(answer.content)).id


def test_an_id_may_hold_anything(house):
    names = [house.add(name) for name in ("a/b", "a b", "../x", "50%", "日本", "json")]
    browser = house.visit()
    listed = [link for link in Elements(browser.get("/runs").text).links if link.startswith("/runs/kp")]
    for link in listed:
        if not link.endswith("/feedback"):
            assert 200 == browser.get(link).status_code
    assert len(names) * 2 == len(listed)


@pytest.mark.parametrize("name", ["kp:trace:none", "kp:trace:%00", "x" * 3_000, "none/json", "%ff"])
def test_an_unknown_run_says_what_may_have_happened(house, name):
    answer = house.visit().get(f"/runs/{name}")
    assert 404 == answer.status_code
    assert "It was deleted" in answer.text


def test_a_long_run_has_pages(house):
    name = house.add("long", thoughts(4_500))
    browser = house.visit()
    page = browser.get(f"/runs/{name}").text
    assert ("thought 1999." in page, "thought 2000." in page) == (True, False)
    assert f"/runs/{name}?from=2000" in Elements(page).links
    page = browser.get(f"/runs/{name}?from=4100").text
    assert ("thought 3999." in page, 'id="step-4100"' in page, "thought 4499." in page) == (False, True, True)
    assert "thought 4499." in browser.get(f"/runs/{name}?from=999999").text


def test_a_search_without_script_shows_the_matches(house):
    run = thoughts(2_000)
    run["steps"][700]["content"] = "The Needle & thread <b>"
    name = house.add("long", run)
    browser = house.visit()
    page = browser.get(f"/runs/{name}?q=needle+%26").text
    assert "<mark>Needle &amp;</mark> thread &lt;b&gt;" in page
    assert "1 step of 2,000 contains “needle &amp;”" in page
    assert [f"step-{place}" for place in (699, 700, 701)] == [
        item for item in Elements(page).ids if item.startswith("step-")
    ]
    assert "No step contains this text" in browser.get(f"/runs/{name}?q=nothing").text


def test_a_search_with_many_matches_has_pages(house):
    name = house.add("long", thoughts(450))
    browser = house.visit()
    page = browser.get(f"/runs/{name}?q=thought").text
    assert "450 steps of 450 contain" in page
    more = f"/runs/{name}?q=thought&from=200"
    assert more in Elements(page).links
    assert "450 steps of 450 contain" in browser.get(more).text
    assert "<mark>thought</mark> 399." in browser.get(more).text


def test_markup_in_every_field_stays_text(house):
    name = house.add("hostile", attacked())
    browser = house.visit()
    for query in (*(f"view={view}" for view in VIEWS), "q=script", "q=%3Cscript%3E", "q=%22onerror%3D"):
        check(browser.get(f"/runs/{name}?{query}").text.replace("<!doctype html>", ""))


@given(documents())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_another_program_stored_is_shown(house, run):
    """A document that is a trace has a page in every view, whatever its fields hold."""
    run["id"] = "kp:trace:any"
    try:
        trace = ReasoningTrace.model_validate(run)
    except ValueError:
        return
    browser = house.browsers[0] if house.browsers else house.visit()
    house.grace.store.get = lambda name: trace
    for view in VIEWS:
        answer = browser.get(f"/runs/kp:trace:any?view={view}")
        assert 200 == answer.status_code
        check(answer.text.replace("<!doctype html>", ""))


def test_a_run_that_asks_is_a_page_before_it_is_stored(house):
    """A request links its run: while that goes on, its page names the request, and later what has become of it."""
    browser, ask = house.visit(), gk.InboxReviewer(wait="raise")
    refund = house.grace.gate(name="refund", key="one", floor="confirm", reviewer=ask)(print)
    with house.grace.run("refund", name="job") as run:
        with contextlib.suppress(gk.ActionPending):
            refund()
        (asked,) = house.grace.approvals.pending()
        assert f"/runs/{run.id}" in Elements(browser.get(f"/approvals/{asked.id}").text).links
        page = browser.get(f"/runs/{run.id}")
        assert (200, True) == (page.status_code, "Run not stored yet" in page.text)
        assert f"/approvals/{asked.id}" in Elements(page.text).links
    house.grace.approvals.reject(asked.id, by="ana")
    house.grace.flush()
    assert "rejected by ana" in Elements(browser.get(f"/runs/{run.id}").text).text
    assert 404 == browser.get("/runs/kp:trace:nothing").status_code


def test_only_ids_of_traces_are_links():
    """Quoted, whatever they hold; another text, and one that is too long, stays a text."""
    links = links_from("")
    assert "/runs/kp:trace:a%2F..%2Fb%3Fc%23d%20%25%3F" == run_address("", "kp:trace:a/../b?c#d %\ud800")
    assert "/runs/kp:trace:1?from=7#step-7" == links.step("kp:trace:1", 7)
    assert "/approvals/kp:approval:1" == links.approval("kp:approval:1")
    assert (None, None, None) == (links.run(".."), links.run("kp:trace:" + "x" * 600), links.step("x", 1))


def test_steps_are_found_by_everything_they_show():
    """Texts, tools, arguments, models, errors, and the gate before them; whatever the case."""
    for query, expected in (
        ("CUSTOMER", [0]),
        ("gemini", [0]),
        ("refund policy", [1]),
        ("policy.md", [1, 2]),
        ("返金", [7]),
        ("ben", [8]),
    ):
        assert expected == matching_steps(full(), query)
    assert [] == matching_steps(full(), "nothing like it")
    assert [] == matching_steps({}, "a")


def test_a_match_is_marked_in_texts_only():
    page = '<a href="/a">a &amp; A</a>'
    assert '<a href="/a"><mark>a</mark> &amp; <mark>A</mark></a>' == mark_matches(page, "a")
    assert '<a href="/a">a <mark>&amp;</mark> A</a>' == mark_matches(page, "&")


@given(st.text(max_size=30), st.text(min_size=1, max_size=3))
def test_marks_change_nothing_but_marks(text, query):
    page = f'<p title="{safe(text)}">{safe(text)}</p>'
    found = mark_matches(page, query)
    assert visible(text) == html.unescape(re.sub("</?mark>|</?p[^>]*>", "", found))
    assert page.split(">")[0] == found.split(">")[0]


def labels(house, name):
    found = (house.grace.store.get(name).grace or {}).get("feedback", [])
    return [(entry["correct"], entry["by"], entry["source"], entry.get("note")) for entry in found]


@pytest.mark.parametrize(("value", "stored", "word"), [("1", True, "right"), ("0.5", 0.5, "partly")])
def test_a_button_stores_a_label(house, value, stored, word):
    name = house.add("a", thoughts(1))
    browser = house.visit(name="ben")
    answer = browser.post_form(f"/runs/{name}/feedback", {"correct": value, "note": " a remark "})
    assert (303, f"/runs/{name}#labels") == (answer.status_code, answer.headers["location"])
    assert [(stored, "ben", "user", "a remark")] == labels(house, name)
    text = " ".join(Elements(browser.get(f"/runs/{name}").text).text.split())
    assert f"{word} ben user" in text
    assert "a remark" in text


def test_a_program_that_an_application_lets_onto_the_pages_stays_a_program(house):
    name = house.add("a", thoughts(1))
    browser = house.visit(name="bot", role="agent")
    browser.post_form(f"/runs/{name}/feedback", {"correct": "1"})
    (entry,) = house.grace.store.get(name).grace["feedback"]
    assert ("bot", True) == (entry["by"], entry["program"])
    assert "bot (program)" in browser.get(f"/runs/{name}").text


def test_a_button_in_the_list_leads_back_to_it(house):
    """With the filters and the page; never to another site."""
    name = house.add("a", thoughts(1, status="completed"))
    browser = house.visit()
    answer = browser.post_form(f"/runs/{name}/feedback", {"correct": "1", "list": "status=completed&labelled=old"})
    assert "/runs?status=completed&labelled=kp%3Atrace%3Aa" == answer.headers["location"]
    assert "The label was stored" in browser.get(answer.headers["location"]).text
    answer = browser.post_form(f"/runs/{name}/feedback", {"correct": "1", "list": "//evil.example/\r\nX: y"})
    assert answer.headers["location"].startswith("/runs?")
    assert "x" not in answer.headers


def test_a_label_needs_a_value_a_run_and_the_right(house):
    name = house.add("a", thoughts(1))
    browser = house.visit()
    for value in ("", "2", "nan", "right"):
        assert 422 == browser.post_form(f"/runs/{name}/feedback", {"correct": value}).status_code
    assert 404 == browser.post_form("/runs/kp:trace:none/feedback", {"correct": "1"}).status_code
    assert 403 == house.visit(role="viewer").post_form(f"/runs/{name}/feedback", {"correct": "1"}).status_code
    assert [] == labels(house, name)


def compared(house, one, two):
    a, b = house.add("a", one), house.add("b", two)
    return house.visit().get(f"/runs/compare?a={a}&b={b}").text


def text_of(page):
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def test_the_first_difference_is_named_and_linked(house):
    other = full()
    other["steps"][3]["input"]["order"] = 4712
    page = compared(house, full(), other)
    assert "First difference: step 3 . 9 steps equal, 1 changed, 0 only in A, 0 only in B." in text_of(page)
    found = Elements(page)
    assert "#difference" in found.links
    assert 1 == found.ids.count("difference")
    assert {"/runs/kp:trace:a?from=3#step-3", "/runs/kp:trace:b?from=3#step-3"} <= set(found.links)
    assert ["4711", "4712"] == re.findall("471[0-9]", text_of(page.partition('id="difference"')[2]))[:2]


def test_equal_runs_say_so(house):
    assert "No difference: all steps are equal" in text_of(compared(house, thoughts(3), thoughts(3)))
    page = house.visit().get("/runs/compare?a=kp:trace:a&b=kp:trace:a").text
    assert "Both sides are the same run." in page


def test_a_run_that_goes_on_is_named(house):
    text = text_of(compared(house, thoughts(3), thoughts(5)))
    for words in ("First difference: step 3, which only B has", "only in B", "no such step", "thought 4."):
        assert words in text


def test_two_ticked_runs_are_compared(house):
    house.add("a", thoughts(1))
    browser = house.visit()
    answer = browser.get("/runs/compare?id=kp:trace:a&id=kp:trace:b")
    assert "/runs/compare?a=kp%3Atrace%3Aa&b=kp%3Atrace%3Ab" == answer.headers["location"]
    answer = browser.get("/runs/compare?id=a&id=b&id=c")
    assert 422 == answer.status_code
    assert "3 runs selected: select exactly two" in text_of(answer.text)
    assert 200 == browser.get("/runs/compare?a=kp:trace:a").status_code
    assert 404 == browser.get("/runs/compare?a=kp:trace:a&b=kp:trace:none").status_code


def test_long_runs_are_bounded(house):
    one, two = thoughts(2_500), thoughts(2_100)
    for step in two["steps"][:500]:
        step["content"] += "!"
    page = compared(house, one, two)
    assert "500 steps of one run beyond the first 2,000 are not compared" in page
    assert 299 == page.count('class="pair"')
    assert "more differing steps are not shown here" in page


def test_markup_stays_text(house):
    check(compared(house, full(), attacked()).replace("<!doctype html>", ""))


def steps(words):
    return [{"type": "thought", "content": word} for word in words]


def call(tool, **arguments):
    return {"type": "tool_call", "tool": {"name": tool}, "input": arguments}


def test_changed_steps_stand_beside_each_other():
    one = [{**call("a", x=1), "latency_ms": 5.0}, call("b", y=1), call("c")]
    two = [{**call("a", x=1), "latency_ms": 9.0}, call("b", y=2), {"type": "thought"}, call("c")]
    assert [(True, [(0, 0)]), (False, [(1, 1), (None, 2)]), (True, [(2, 3)])] == align_steps(one, two)
    assert [] == align_steps([], [])
    polls = [{"type": "tool_call", "content": "poll"}] * 300
    blocks = align_steps([{"type": "thought", "content": "a"}, *polls], [{"type": "thought", "content": "b"}, *polls])
    assert [(False, 1), (True, 300)] == [(is_equal, len(pairs)) for is_equal, pairs in blocks]


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_every_step_stands_once_and_in_order(one, two):
    blocks = align_steps(steps(one), steps(two))
    found = [pair for _, pairs in blocks for pair in pairs]
    assert list(range(len(one))) == [first for first, _ in found if first is not None]
    assert list(range(len(two))) == [second for _, second in found if second is not None]
    assert all(one[first] == two[second] for is_equal, pairs in blocks if is_equal for first, second in pairs)
    if one and two:
        assert (one[0] == two[0]) == blocks[0][0]


def test_each_action_has_its_own_buttons_and_labels(house):
    """Each is shown with its arguments; a label is one of the action, and leads back to the actions, which stay open. Who may not label runs may not label actions."""
    name = house.add(
        "a",
        thoughts(
            1,
            decisions=[
                {"id": each, "action": "pay", "outcome": "executed", "arguments": {"to": f"<i>{each}"}} for each in "xy"
            ],
        ),
    )
    browser = house.visit(name="ben")
    assert '<details class="about" id="actions"><' in browser.get(f"/runs/{name}").text
    answer = browser.post_form(f"/runs/{name}/feedback", {"correct": "0", "action": "y"})
    assert (303, f"/runs/{name}#actions") == (answer.status_code, answer.headers["location"])
    grace = house.grace.store.get(name).grace
    assert [("y", False, "ben")] == [(each["action"], each["correct"], each["by"]) for each in grace["action_feedback"]]
    assert "feedback" not in grace
    page = browser.get(f"/runs/{name}").text
    assert '<details class="about" id="actions" open><' in page
    text = " ".join(Elements(page).text.split())
    assert (
        '1. pay executed to = "<i>x" Right Partly Wrong 2. pay executed to = "<i>y" Right Partly Wrong Labelswrong ben user'
        in text
    )
    assert 422 == browser.post_form(f"/runs/{name}/feedback", {"correct": "0", "action": "z"}).status_code
    viewer = house.visit(role="viewer")
    assert 403 == viewer.post_form(f"/runs/{name}/feedback", {"correct": "1", "action": "y"}).status_code
    assert 'name="action"' not in viewer.get(f"/runs/{name}").text


def test_the_page_of_a_decided_request_labels_its_action(house):
    """Once the run is stored, and leads back to the request."""
    browser, ask = house.visit(name="ben"), gk.InboxReviewer(wait="raise")
    refund = house.grace.gate(name="refund", key="one", floor="confirm", reviewer=ask)(print)
    with contextlib.suppress(gk.ActionPending), house.grace.run("refund", name="job") as run:
        refund()
    house.grace.flush()
    (asked,) = house.grace.approvals.pending()
    assert "Was the proposed call right?" not in browser.get(f"/approvals/{asked.id}").text
    house.grace.approvals.reject(asked.id, by="ana")
    page = browser.get(f"/approvals/{asked.id}").text
    assert "Was the proposed call right?" in page
    assert f'action="/runs/{run.id}/feedback"' in page
    form = {"correct": "0", "action": asked.id, "approval": asked.id}
    answer = browser.post_form(f"/runs/{run.id}/feedback", form)
    assert (303, f"/approvals/{asked.id}#label") == (answer.status_code, answer.headers["location"])
    (label,) = house.grace.store.get(run.id).grace["action_feedback"]
    assert (run.trace.decisions[0].id, False, "ben") == (label["action"], label["correct"], label["by"])
    assert "wrong ben user" in " ".join(Elements(browser.get(f"/approvals/{asked.id}").text).text.split())
