"""The page of a calibration: complete, in plain words, and safe whatever the runs are called."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser

import pytest

from grace_kp import calibrate as cal
from grace_kp.calibrate import assess, risk_thresholds
from tests.calibrate.examples import labelled_runs
from tests.pages.reading import Elements, problems

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J\u202e"
RISKS = {"silent": 0.05, "notify": 0.1, "confirm": 0.4}


class Page(HTMLParser):
    """What a browser would make of a page."""

    VOID = frozenset({"meta", "use", "path", "br", "img", "rect", "circle", "line"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.handlers, self.links, self.text, self.open = set(), [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.links += [value for name, value in attrs if name in {"src", "href", "xlink:href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() in {tag, "html"}

    def handle_data(self, data):
        self.text.append(data)


def calibrated(count=1_000, **how):
    return cal.calibrate_runs(labelled_runs(count, share=0.9), cal.Promise(risks=RISKS, **how))


@pytest.fixture(scope="module")
def found():
    return calibrated(moment="end")


def test_the_page_shows_what_was_found(found):
    page = cal.calibration_page(found, "Clerk")
    text = " ".join(Page(page).text)
    assert 4 == page.count("<svg")
    for each in found.levels:
        assert f"{each.errors:,} of {each.reached:,}" in text
    for words in ("What this does not promise", "same agent, models, tools", "formula grace", "run length", "kp:agent:clerk", "1,000 labelled runs", "hedging", "95 % intervals"):  # fmt: skip
        assert words in text
    assert "The selective promise: of all runs" in text


def test_the_page_stands_alone(found):
    """No script, no handler of events, nothing from elsewhere; all elements are closed."""
    page = Page(cal.calibration_page(found))
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert [] == page.handlers
    assert all(link.startswith("#") for link in page.links)
    assert [] == [tag for tag in page.open if tag != "html"]


def test_diagrams_are_described_and_hold_their_numbers(found):
    page = cal.calibration_page(found)
    assert 4 == len(re.findall("<desc id=", page)) == len(re.findall("aria-labelledby=", page))
    for each in found.levels:
        assert f"{each.level} {each.risk:g}" in page
        assert (each.threshold is None) == (f"{each.level} from " not in page)
    assert "share wrong, of these" in page


def test_a_confidence_that_never_varies_can_be_drawn():
    labelled = labelled_runs(200)
    alike = cal.Labels(
        traces=[labelled.traces[0]] * 200, labels=labelled.labels, weights=labelled.weights, sources=labelled.sources,
        groups=[str(number) for number in range(200)],
    )  # fmt: skip
    page = cal.calibration_page(cal.calibrate_runs(alike, cal.Promise(risks={"silent": 0.05}, kind="overall")))
    assert "share wrong, of all" in page
    assert "chosen thresholds" not in page


def test_hostile_names_are_text():
    """Of tasks, agents, models, tools, sources of labels and domains, and of the page itself."""
    labelled = labelled_runs(200)
    for number, trace in enumerate(labelled.traces):
        trace.grace["source"] = {
            "model": f"{HOSTILE}{number % 2}",
            "source": f"{HOSTILE}{number % 2}",
            "task_id": f"{HOSTILE}{number}",
        }
        trace.metadata.agent_id = f"kp:agent:{HOSTILE}"
        for step in trace.steps:
            if step.tool is not None and step.tool.name == "find":
                step.tool.name = HOSTILE
    hostile = cal.Labels(
        traces=labelled.traces, labels=labelled.labels, weights=labelled.weights,
        sources=[HOSTILE] * 200, groups=[f"{HOSTILE}{number}" for number in range(200)],
    )  # fmt: skip
    found = cal.calibrate_runs(hostile, cal.Promise(risks=RISKS), holdout=0)
    text = cal.calibration_page(found, HOSTILE)
    page = Page(text)
    assert not page.tags & {"script", "img"}
    assert [] == page.handlers
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert f"{HOSTILE[:20]}" in " ".join(page.text)


@pytest.mark.parametrize(
    ("how", "holdout", "words"),
    [
        ({"kind": "overall"}, 0.4, ["The overall promise", "does not bound the share of errors among the actions"]),
        ({"moment": "action"}, 0.4, ["Each task counts once, with one run and one action of it"]),
        (
            {"moment": "end"},
            0,
            ["The promise is approximate", "calibrate at the moment of an action", "cross-validation"],
        ),
    ],
    ids=["overall", "action", "approximate"],
)
def test_the_limits_are_those_of_the_promise(how, holdout, words):
    found = cal.calibrate_runs(labelled_runs(200), cal.Promise(risks=RISKS, **how), holdout=holdout)
    text = " ".join(Page(cal.calibration_page(found)).text)
    assert [] == [each for each in words if each not in text]


def test_nothing_promised_is_said_at_the_top():
    found = cal.calibrate_runs(labelled_runs(100), cal.Promise(risks={"silent": 0.01}))
    text = " ".join(Page(cal.calibration_page(found)).text)
    assert "No level keeps its promise on these labels" in text
    assert "Silent is never used: a risk of 0.01 needs at least 230 labels" in text


HOSTILE_GROUP = '<img src=x onerror=alert(1)>"&\u202e'


def samples(count=400):
    draw = random.Random(3)
    confidence = [draw.random() for _ in range(count)]
    return confidence, [draw.random() < value for value in confidence]


def test_an_assessment_shows_figures_with_intervals_and_reliability():
    confidence, correct = samples()
    found = assess(confidence, correct, groups=["a", HOSTILE_GROUP] * 200)
    html = found._repr_html_()
    text = Elements(html).text
    pair = found.intervals["auroc"]
    for words in (
        f"{found.auroc:.2f} ({pair[0]:.2f} to {pair[1]:.2f})",
        "calibration error",
        "0.0 to 0.1",
        "% correct",
        "group",
        "<img src=x",
    ):
        assert words in text
    assert [] == problems(html)
    assert "img" not in Elements(html).tags


def test_thresholds_show_the_promise_and_what_the_sample_shows():
    confidence = [0.9] * 300 + [0.3] * 100
    correct = [True] * 299 + [False] + [True, False] * 50
    found = risk_thresholds(confidence, correct, {"silent": 0.001, "notify": 0.05})
    html = found._repr_html_()
    text = Elements(html).text
    for words in (
        "The selective promise",
        "silent",
        "never",
        "notify",
        f"{found.thresholds.notify:.3f}",
        "75.0%",
        "1 of 300",
        "tested on 400 independent labels",
        *found.notes,
    ):
        assert words in text
    assert [] == problems(html)
