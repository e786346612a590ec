"""From labelled runs to a profile with a promise, and the page and notebook output that show it."""

from __future__ import annotations

import dataclasses
import random
import re
from html.parser import HTMLParser

import pytest

from grace_kp import calibrate as cal
from grace_kp.calibrate import assess, risk_thresholds
from tests.calibrate.examples import labelled_runs
from tests.pages.reading import Elements, problems

RISKS = {"silent": 0.05, "notify": 0.1, "confirm": 0.4}


@pytest.fixture(scope="module")
def found():
    return cal.calibrate_runs(labelled_runs(1_000, share=0.9), cal.Promise(risks=RISKS, moment="end"))


def test_the_profile_carries_thresholds_and_what_they_promise(found, tmp_path):
    found.profile.save(tmp_path / "profile.json")
    loaded = cal.CalibratedProfile.load(tmp_path / "profile.json")
    assert found.thresholds.thresholds == loaded.thresholds
    assert ("selective", RISKS, 0.1, "end") == tuple(
        loaded.promise[name] for name in ("kind", "risks", "delta", "moment")
    )
    assert (False, 400) == (loaded.promise["approximate"], loaded.promise["n"])
    assert found.notes == tuple(loaded.promise["notes"])
    assert 0.5 < loaded.quality["end"]["learned"]["auroc"] < 1


def test_the_promise_is_tested_on_runs_that_were_not_fitted(found):
    assert (600, 400, 400) == tuple(found.sample[name] for name in ("fitted_runs", "assessed_runs", "tested"))
    assert 600 == found.profile.fitted_on["runs"]
    used = [each for each in found.levels if each.threshold is not None]
    assert used
    for each in used:
        assert each.share_wrong == each.errors / each.reached <= each.bound <= each.risk
        assert each.threshold == round(each.threshold, 3)


def test_the_learned_confidence_beats_the_formula_and_the_run_length(found):
    auroc = {name: each.auroc for name, each in found.assessments.items()}
    assert ["learned", "formula grace", "run length"] == list(auroc)
    assert auroc["learned"] > max(auroc["formula grace"], auroc["run length"])


def test_the_curve_ends_with_all_runs(found):
    for curve in found.curves.values():
        coverages = [x for x, _ in curve]
        assert sorted(coverages) == coverages
        assert 1.0 == coverages[-1]
    assert found.curves["learned"][-1] == found.curves["formula grace"][-1]
    silent = found.levels[0]
    assert (silent.coverage, silent.share_wrong) in found.curves["learned"] or silent.threshold is None


def test_without_a_holdout_the_promise_is_approximate():
    found = cal.calibrate_runs(labelled_runs(200), cal.Promise(risks={"confirm": 0.6}), holdout=0)
    assert found.is_approximate
    assert found.profile.promise["approximate"] is True
    assert any("the promise is approximate" in note for note in found.profile.promise["notes"])
    assert 200 == found.profile.fitted_on["runs"] == found.sample["assessed_runs"]


def test_what_is_lacking_is_known_before_anything_is_fitted():
    """The held-back tasks count, and of them those with a label of 0 or 1."""
    labelled = labelled_runs(100, labels=[0.5] * 50 + [True] * 50)
    promise = cal.Promise(risks={"silent": 0.05})
    (sentence,) = cal.lacking_labels(labelled, promise)
    assert sentence.startswith("silent at 0.05 needs at least 45 labels without an error, and there are ")
    assert int(sentence.split()[-1]) < 40
    assert () == cal.lacking_labels(labelled, promise, holdout=0)


@pytest.mark.parametrize(
    ("labelled", "holdout", "problem"),
    [
        (
            cal.Labels(left_out={"no label": 3}),
            0.4,
            r"there are no labelled runs \(3 no label\); a label is feedback on a run, or a field",
        ),
        (labelled_runs(3), 0.4, r"too few labels .* \(of 3 labelled runs, 2 are held back to choose the thresholds"),
        (labelled_runs(100, labels=[True] * 100), 0.4, "0 wrong; at least 50 are needed, 15 of each"),
        (labelled_runs(100, labels=[True] * 100), 0, "0 wrong; at least 50 are needed, 15 of each"),
        (labelled_runs(200, tasks=3), 0.4, "runs of 5 different tasks are needed, and these are of 1"),
    ],
    ids=["none", "three", "one class", "one class, no holdout", "few tasks"],
)
def test_too_few_labels_are_refused(labelled, holdout, problem):
    with pytest.raises(ValueError, match=problem):
        cal.calibrate_runs(labelled, cal.Promise(risks=RISKS), holdout=holdout)


def test_a_list_of_runs_is_no_labels():
    with pytest.raises(TypeError, match=r"the Labels that calibrate\.labels returns, not list"):
        cal.calibrate_runs([{}], cal.Promise(risks=RISKS))  # type: ignore[arg-type]


def test_runs_without_a_task_count_each_for_itself():
    found = cal.calibrate_runs(labelled_runs(200, tasks=1), cal.Promise(risks={"confirm": 0.6}))
    assert 80 == found.thresholds.n
    assert any("each run counts as a separate task" in note for note in found.notes)


def test_weighted_labels_are_thinned():
    """Audited runs stand for many, and the guarantee rests on a sample in which all had the same chance."""
    weighted = dataclasses.replace(labelled_runs(400), weights=[4.0, 1.0] * 200)
    found = cal.calibrate_runs(weighted, cal.Promise(risks={"confirm": 0.6}))
    assert 80 < found.thresholds.n < 125
    assert any("after thinning" in note for note in found.notes)
    assert 1.0 == found.curves["learned"][-1][0]


def test_groups_are_assessed_on_their_own():
    labelled = labelled_runs(300)
    for number, trace in enumerate(labelled.traces):
        trace.grace["source"] = {"model": f"model {number % 20}", "source": "bench"}
    found = cal.calibrate_runs(labelled, cal.Promise(risks={"confirm": 0.6}), holdout=0)
    assert ["model"] == list(found.by_group)
    assert 13 == len(found.by_group["model"])
    assert 300 == sum(each.n for each in found.by_group["model"].values())
    assert "all others" in found.by_group["model"]


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J\u202e"


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
def end_calibration():
    return calibrated(moment="end")


def test_the_page_shows_what_was_found(end_calibration):
    page = cal.calibration_page(end_calibration, "Clerk")
    text = " ".join(Page(page).text)
    assert 4 == page.count("<svg")
    for each in end_calibration.levels:
        assert f"{each.errors:,} of {each.reached:,}" in text
    for words in ("What this does not promise", "same agent, models, tools", "formula grace", "run length", "kp:agent:clerk", "1,000 labelled runs", "hedging", "95 % intervals"):  # fmt: skip
        assert words in text
    assert "The selective promise: of all runs" in text


def test_the_page_stands_alone(end_calibration):
    """No script, no handler of events, nothing from elsewhere; all elements are closed."""
    page = Page(cal.calibration_page(end_calibration))
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert [] == page.handlers
    assert all(link.startswith("#") for link in page.links)
    assert [] == [tag for tag in page.open if tag != "html"]


def test_diagrams_are_described_and_hold_their_numbers(end_calibration):
    page = cal.calibration_page(end_calibration)
    assert 4 == len(re.findall("<desc id=", page)) == len(re.findall("aria-labelledby=", page))
    for each in end_calibration.levels:
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
        ({"moment": "action"}, 0.4, ["Each task with a label counts once, with one run and one action of it"]),
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
