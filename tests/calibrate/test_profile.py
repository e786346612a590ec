"""A learned profile in use: predictions, mismatches, factors alone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re

import pytest

from grace_kp import ConfidenceCalculator, ConfidenceFactors, Thresholds
from grace_kp import calibrate as cal
from grace_kp.confidence import ACTION_FEATURES, ActionFeatures
from tests.calibrate.examples import drawn_run, drawn_runs, run


@pytest.fixture(scope="module")
def profile():
    return cal.fit(*drawn_runs(150))


def test_the_confidence_is_a_score_with_a_reason(profile):
    trace = drawn_run(5, correct=False)
    score = profile.confidence(trace, moment="end")
    assert score.score == round(profile.predict(trace), 3)
    assert score.reason.startswith("Learned from 150 runs: ")
    assert math.log(score.score / (1 - score.score)) == pytest.approx(sum(score.contributions.values()), abs=0.02)
    assert score.factors.tool_execution_count == sum(step["type"] == "tool_call" for step in trace["steps"])


def test_factors_alone_give_a_confidence(profile):
    calculator = ConfidenceCalculator(profile=profile)
    assert "calibrated" == calculator.profile
    fine, poor = (calculator.calculate(ConfidenceFactors(tool_execution_count=5, tool_success_count=n)) for n in (5, 0))
    assert poor.score <= fine.score
    assert 0 <= calculator.calculate(ConfidenceFactors()).score <= 1


def test_a_run_of_another_agent_model_or_tool_is_noticed(profile):
    trace = run([("tool_call", ("refund", {}))], model_calls=[{"model": "m-2"}])
    model = "the model is now 'm-2'; the profile was fitted on runs that name none"
    tool = "the tool is now 'refund'; the profile was fitted on 'find', 'pay', 'send'"
    assert (model, tool) == profile.mismatches(trace)
    trace["metadata"].update(agent_id="kp:agent:other", task_domain="medical")
    agent = "the agent is now 'kp:agent:other'; the profile was fitted on 'kp:agent:clerk'"
    domain = "the domain is now 'medical'; the profile was fitted on 'default'"
    assert (agent, model, tool, domain) == profile.mismatches(trace)
    assert () == profile.mismatches(drawn_run(1, correct=True))
    assert (
        "the agent is not recorded; the profile was fitted on 'kp:agent:clerk'",
        "the domain is not recorded; the profile was fitted on 'default'",
    ) == profile.mismatches({})


@pytest.mark.parametrize("fitted_on", [
    {}, {"agents": []}, {"agents": [], "models": [], "tools": []}, {"agents": ["kp:agent:clerk"]},
    {"agents": "kp:agent:clerk", "models": [], "tools": ["find"]}, {"agents": {"kp:agent:clerk": 1}, "models": [], "tools": []},
    {"agents": ["kp:agent:clerk"], "models": ["m-1"], "tools": ["find"]}, {"agents": ["kp:agent:*"], "models": [], "tools": ["find"]},
    {"agents": ["kp:agent:clerk"], "models": [], "tools": []}, {"agents": None, "models": None, "tools": None},
    {"agents": ["kp:agent:clerk"], "models": [], "tools": ["find"], "domains": []},
])  # fmt: skip
def test_what_a_profile_does_not_state_is_a_mismatch(profile, fitted_on):
    trace = run([("tool_call", ("find", {}))])
    assert dataclasses.replace(profile, fitted_on=fitted_on).mismatches(trace)
    whole = {"agents": ["kp:agent:clerk"], "models": [], "tools": ["find"]}
    assert () == dataclasses.replace(profile, fitted_on=whole).mismatches(trace)


def test_the_digest_is_that_of_the_content(profile):
    digest = profile.digest
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest)
    assert digest == dataclasses.replace(profile, predictions={}).digest
    changes = [
        {"fitted_on": {**profile.fitted_on, "agents": ["kp:agent:other"]}}, {"quality": {}}, {"fitted_runs": None},
        {"thresholds": Thresholds()}, {"promise": {}}, {"heads": {"end": profile.heads["end"]}},
        {"heads": {**profile.heads, "end": dataclasses.replace(profile.heads["end"], offset=0.25)}},
    ]  # fmt: skip
    digests = [dataclasses.replace(profile, **change).digest for change in changes]
    assert len(changes) + 1 == len({digest, *digests})


def test_thresholds_and_their_promise_stay_with_the_profile(profile):
    chosen = Thresholds(silent=math.inf, notify=0.9, confirm=0.2)
    changed = profile.with_thresholds(chosen, {"kind": "selective", "delta": 0.1})
    assert (None, None) == (profile.thresholds, profile.promise)
    assert (chosen, "selective") == (changed.thresholds, changed.promise["kind"])
    assert profile.predict(drawn_run(1, correct=True)) == changed.predict(drawn_run(1, correct=True))


@pytest.fixture(scope="module")
def promised():
    return cal.fit(*drawn_runs(150)).with_thresholds(
        Thresholds(math.inf, 0.8, 0.4), {"kind": "overall", "risks": {"silent": 0.05}}
    )


def test_a_loaded_profile_predicts_the_same(promised, tmp_path):
    promised.save(tmp_path / "profile.json")
    loaded = cal.CalibratedProfile.load(tmp_path / "profile.json")
    for trace in drawn_runs(50, seed=9)[0]:
        for moment in cal.MOMENTS:
            assert promised.predict(trace, moment=moment) == loaded.predict(trace, moment=moment)
            assert promised.explain(trace, moment=moment) == loaded.explain(trace, moment=moment)
    assert promised.to_dict() == loaded.to_dict()
    assert Thresholds(math.inf, 0.8, 0.4) == loaded.thresholds
    with pytest.raises(ValueError, match="a saved profile does not keep them"):
        loaded.out_of_fold("end")


def changed(document, path, value):
    """A copy with another value at a path; `...` removes the field."""
    document = json.loads(json.dumps(document))
    place = document
    for name in path[:-1]:
        place = place[name]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


COLUMN = ("heads", "end", "columns", 0)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("schema",), "other", "schema must be 'grace_kp/calibrated-profile'"),
        (("version",), 3, "version: is of version 3, and this library reads 2"),
        (("version",), 2, "action: must not be missing in a file of this version"),
        (("version",), True, "version: must be from 1 to 2"),
        (("heads",), ..., "heads"),
        (("heads", "action"), ..., "heads: must have the moments end and action"),
        (("heads", "later"), {}, "heads.later"),
        (("extra",), 1, "unknown field 'extra'"),
        ((*COLUMN, "weight"), "0.5", r"heads.end.columns\[0\].weight"),
        ((*COLUMN, "scale"), 0, r"heads.end.columns\[0\].scale"),
        ((*COLUMN, "low"), ..., r"heads.end.columns\[0\].low"),
        ((*COLUMN, "low"), 1e9, "heads.end.columns: low must not be above high"),
        ((*COLUMN, "name"), "unheard_of", "heads.end.columns: 'unheard_of' is not a feature of this version"),
        ((*COLUMN, "name"), "calls", "heads.end.columns: a name occurs twice"),
        (("heads", "end", "calibration", "slope"), -1.0, "heads.end.calibration.slope"),
        (("thresholds",), {"silent": 0.1, "notify": 0.5, "confirm": 0.4}, "thresholds: thresholds must satisfy"),
        (("fitted_on",), ..., "fitted_on"),
        (("fitted_on", "agents"), "kp:agent:clerk", "fitted_on.agents"),
        (("fitted_on", "tools"), {"find": 1}, "fitted_on.tools"),
        (("fitted_runs",), ["kp:trace:1"], r"fitted_runs\[0\]"),
        (("digest",), 7, "digest"),
        (("promise", "risks"), [0.1], "promise.risks"),
        (("promise", "risks"), {"silent": 2}, "promise.risks.silent"),
        (("heads", "end", "intercept"), 31, "heads.end.intercept"),
        (("heads", "end", "calibration", "offset"), 1e3, "heads.end.calibration.offset"),
        (("heads", "end", "calibration", "slope"), 1e9, "heads.end.calibration.slope"),
        ((*COLUMN, "weight"), 40.0, r"heads.end.columns\[0\].weight"),
        ((*COLUMN, "scale"), 1e-12, r"heads.end.columns\[0\].scale"),
        ((*COLUMN, "centre"), -1e6, "heads.end.columns: centre must be from low to high, not as in 'steps'"),
    ],
)  # fmt: skip
def test_a_damaged_profile_is_refused_with_the_field(promised, tmp_path, path, value, problem):
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(changed(promised.to_dict(), path, value)))
    with pytest.raises(cal.ProfileFileError, match=problem) as caught:
        cal.CalibratedProfile.load(file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": NaN}', '"x"', '{"a": 1, "a": 2}', "[" * 100_000])
def test_a_file_that_is_no_profile_is_refused(tmp_path, text):
    file = tmp_path / "profile.json"
    file.write_text(text)
    with pytest.raises(cal.ProfileFileError):
        cal.CalibratedProfile.load(file)
    file.write_bytes(b"\xff")
    with pytest.raises(cal.ProfileFileError, match="UTF-8"):
        cal.CalibratedProfile.load(file)
    with pytest.raises(FileNotFoundError):
        cal.CalibratedProfile.load(tmp_path / "absent.json")


def test_the_digest_of_a_file_is_that_of_the_profile(promised, tmp_path):
    file = tmp_path / "profile.json"
    promised.save(file)
    content = json.loads(file.read_text(encoding="utf-8"))
    assert promised.digest == content["digest"] == cal.CalibratedProfile.load(file).digest
    del content["digest"]
    texts = [
        json.dumps(content, sort_keys=True), json.dumps(dict(reversed(content.items())), indent=4),
        json.dumps(content).replace(".0,", ","), json.dumps({**content, "digest": promised.digest}, ensure_ascii=False),
    ]  # fmt: skip
    for text in texts:
        file.write_text(text, encoding="utf-8")
        assert promised.digest == cal.CalibratedProfile.load(file).digest
    del content["fitted_runs"]
    file.write_text(json.dumps(content), encoding="utf-8")
    assert None is cal.CalibratedProfile.load(file).fitted_runs


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("fitted_on", "agents"), ["kp:agent:robber"]), (("fitted_on",), {}), (("heads", "action", "intercept"), 20),
        (("heads", "end", "runs"), 151), (("quality",), {}), (("fitted_runs",), []), (("digest",), "sha256:0"),
        (("promise", "delta"), 0.2), (("promise", "notes"), ["fine"]),
    ],
)  # fmt: skip
def test_a_saved_profile_that_was_changed_by_hand_is_refused(promised, tmp_path, path, value):
    file = tmp_path / "profile.json"
    promised.save(file)
    file.write_text(json.dumps(changed(json.loads(file.read_text(encoding="utf-8")), path, value)), encoding="utf-8")
    with pytest.raises(cal.ProfileFileError, match="digest: the file was changed after it was saved") as caught:
        cal.CalibratedProfile.load(file)
    assert str(caught.value).startswith(str(file))


def test_a_file_that_is_nested_too_deeply_is_refused(promised, tmp_path):
    file = tmp_path / "profile.json"
    text = json.dumps(changed(promised.to_dict(), ("quality", "end"), "deep"))
    file.write_text(text.replace('"deep"', "[" * 100 + "]" * 100), encoding="utf-8")
    assert cal.CalibratedProfile.load(file).digest
    # Where reading works and writing does not differs by version of Python.
    for depth in (50_000, 980, *range(900, 1_000, 7)):
        file.write_text(text.replace('"deep"', "[" * depth + "]" * depth), encoding="utf-8")
        with contextlib.suppress(cal.ProfileFileError):
            cal.CalibratedProfile.load(file)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused(promised, tmp_path, value):
    """A weight without a value would turn into a confidence."""
    for path in ((*COLUMN, "weight"), ("quality", "end")):
        text = json.dumps(changed(promised.to_dict(), path, 12345.5)).replace("12345.5", value)
        (tmp_path / "profile.json").write_text(text)
        with pytest.raises(cal.ProfileFileError):
            cal.CalibratedProfile.load(tmp_path / "profile.json")


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ({}, "thresholds: must state every level; silent is missing"),
        ({"silent": 0.9, "confirm": 0.2}, "thresholds: must state every level; notify is missing"),
        ({"silent": 0.1, "notify": 0.1, "confirm": 0.1}, "must be those for which the promise was computed"),
        (None, "must be those for which the promise was computed"),
    ],
)
def test_thresholds_that_were_changed_in_the_file_are_refused(promised, tmp_path, thresholds, words):
    """A level that is left out would take a milder default, and others than those of the promise keep none."""
    file = tmp_path / "profile.json"
    promise = {"kind": "selective", "risks": {"notify": 0.1}, "delta": 0.1, "moment": "action"}
    promised.with_thresholds(Thresholds(math.inf, 0.9, 0.4), promise).save(file)
    assert math.inf == cal.CalibratedProfile.load(file).thresholds.silent
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, "thresholds": thresholds}), encoding="utf-8")
    with pytest.raises(cal.ProfileFileError, match=re.escape(words)):
        cal.CalibratedProfile.load(file)


# A confidence in single actions


def judging(profile):
    actions = [
        ActionFeatures(
            "pay", tuple(float(number % 2) if name == "amount" else 0.0 for name in ACTION_FEATURES), model="m"
        )
        for number in range(80)
    ]
    return profile.with_action(cal.fit_action_features(actions, [number % 2 for number in range(80)], list(range(80))))


@pytest.mark.parametrize("has_heads", [True, False])
def test_a_profile_is_saved_with_its_confidence_in_actions(promised, tmp_path, has_heads):
    profile = judging(promised if has_heads else dataclasses.replace(promised, heads={}))
    profile.save(tmp_path / "profile.json")
    read = cal.CalibratedProfile.load(tmp_path / "profile.json")
    assert read.to_dict() == profile.to_dict()
    assert (read.digest, 2) == (profile.digest, read.to_dict()["version"])
    assert promised.digest != profile.digest
    action = ActionFeatures("pay", (1.0,) * len(ACTION_FEATURES), model="m")
    assert profile.action.predict(action) == read.action.predict(action)
    assert has_heads == bool(read.heads)


def test_a_profile_without_one_keeps_its_version_and_digest(promised, tmp_path):
    """Earlier versions of the library read it, and a pinned digest stays what it was."""
    promised.save(tmp_path / "profile.json")
    read = cal.CalibratedProfile.load(tmp_path / "profile.json")
    assert (1, None) == (read.to_dict()["version"], read.action)
    assert "action" not in read.to_dict()
    assert promised.digest == judging(promised).with_action(None).digest


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("version",), 1, "action: must be missing in a file of this version"),
        (("action",), None, "action: must not be missing"),
        (("action", "rates", "pay"), 2.0, "action.rates.pay"),
        (("action", "regression", "features", "amount"), [], "action.regression.features.amount"),
        (("action", "extra"), 1, "unknown field 'extra'"),
        (("action", "repeat_rate"), 0.5, "the file was changed after it was saved"),
        (("heads", "end"), ..., "heads: must have the moments"),
    ],
)
def test_a_damaged_confidence_in_actions_is_refused(promised, tmp_path, path, value, problem):
    profile = judging(promised)
    content = {**profile.to_dict(), "digest": profile.digest}
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(changed(content, path, value)))
    with pytest.raises(cal.ProfileFileError, match=problem):
        cal.CalibratedProfile.load(file)


ABOUT_ACTIONS = {"kind": "selective", "risks": {"silent": 0.05}, "delta": 0.1, "moment": "action", "unit": "action"}


def test_another_confidence_in_actions_does_not_inherit_a_promise(promised, tmp_path):
    """The promise was computed for the one before; a promise about runs stays, because it is about another confidence."""
    judged = judging(promised)
    about_actions = judged.with_thresholds(Thresholds(0.9, 0.8, 0.7), ABOUT_ACTIONS)
    for model in (judging(promised).action, None):
        changed = about_actions.with_action(model)
        assert (None, None) == (changed.thresholds, changed.promise)
        changed.save(tmp_path / "profile.json")
        assert None is cal.CalibratedProfile.load(tmp_path / "profile.json").promise
    assert about_actions.promise == about_actions.with_action(about_actions.action).promise
    assert promised.promise == judged.promise


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ({"pay": {"silent": 0, "notify": 0, "confirm": 0}}, "must be those for which the promise was computed"),
        ({}, "must be those for which the promise was computed"),
        ({"zz": {"silent": 0, "notify": 0, "confirm": 0}}, "thresholds must be of tools that are stated"),
    ],
)
def test_thresholds_of_a_tool_that_were_changed_in_the_file_are_refused(promised, tmp_path, tools, problem):
    """Also where the line with the digest was removed."""
    judged = judging(promised)
    own = dataclasses.replace(judged.action, thresholds={"pay": Thresholds(0.9, 0.8, 0.7)})
    profile = judged.with_action(own).with_thresholds(Thresholds(0.9, 0.8, 0.7), ABOUT_ACTIONS)
    file = tmp_path / "profile.json"
    profile.save(file)
    content = json.loads(file.read_text())
    assert profile.to_dict() == cal.CalibratedProfile.load(file).to_dict()
    del content["digest"]
    content["action"]["thresholds"] = tools
    file.write_text(json.dumps(content))
    with pytest.raises(cal.ProfileFileError, match=problem):
        cal.CalibratedProfile.load(file)


def test_a_confidence_in_actions_of_other_agents_is_a_mismatch(profile):
    """Its own facts count beside those of the profile; a fit on features states none."""
    trace, known = drawn_run(1, correct=True), {"agents": ["kp:agent:other"], "tools": ["find", "send", "pay"], "domains": ["code"]}  # fmt: skip
    judged = judging(profile)
    assert () == judged.mismatches(trace)
    of_others = profile.with_action(dataclasses.replace(judged.action, fitted_on=known))
    assert (
        "the agent is now 'kp:agent:clerk'; the confidence in actions was fitted on 'kp:agent:other'",
        "the domain is now 'default'; the confidence in actions was fitted on 'code'",
    ) == of_others.mismatches(trace)
    of_same = profile.with_action(dataclasses.replace(judged.action, fitted_on=profile.fitted_on))
    assert () == of_same.mismatches(trace)


def test_the_confidence_in_an_action_has_its_reason_and_its_parts(promised):
    action = ActionFeatures("pay", tuple(float(name == "amount") for name in ACTION_FEATURES), model="m")
    profile = judging(promised)
    score = profile.action_confidence(action, ConfidenceFactors())
    assert round(profile.action.predict(action), 3) == score.score
    assert score.reason.startswith("Learned from 80 actions: raised by a large amount (+")
    assert score.contributions["a large amount"] > 1
    with pytest.raises(ValueError, match="no confidence in actions"):
        promised.action_confidence(action, ConfidenceFactors())
