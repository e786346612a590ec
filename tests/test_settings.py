"""Where a setting's value comes from, which values are taken, and what is said of the others."""

from __future__ import annotations

import dataclasses
import math
import os
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.errors import SettingsError
from grace_kp.settings import FOUND_FILES, Settings
from grace_kp.store import open_store

NAMES = [field.name for field in dataclasses.fields(Settings) if field.name != "source"]


@pytest.fixture
def folder(tmp_path):
    """A working directory inside a project."""
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    return inner


def load(folder, environ=None, **given):
    return Settings.load(environ=environ or {}, folder=folder, **given)


def refusal(folder, environ=None, **given):
    with pytest.raises(SettingsError) as raised:
        load(folder, environ, **given)
    message = str(raised.value)
    assert "\n" not in message
    return message


# Where values come from


def test_the_defaults(folder):
    settings = load(folder)
    assert (Settings(), {}) == (settings, settings.source)


def test_keyword_beats_environment_beats_own_file_beats_project_file_beats_default(folder):
    """The first place that gives a value wins, setting by setting; where each came from is kept."""
    (folder / "grace_kp.toml").write_text('domain = "file"\nmax_text = 100\noverflow = "wait"\n')
    environ = {"GRACE_KP_DOMAIN": "environment", "GRACE_KP_MAX_TEXT": "200"}
    settings = load(folder, environ, domain="keyword")
    assert ("keyword", 200, "wait", "grace") == (
        settings.domain, settings.max_text, settings.overflow, settings.profile,
    )  # fmt: skip
    assert {
        "domain": "keyword",
        "max_text": "environment variable GRACE_KP_MAX_TEXT",
        "overflow": str(folder / "grace_kp.toml"),
    } == settings.source


def test_pyproject_is_read_too(folder):
    for text in (
        '[tool.grace_kp]\ndomain = "code"',
        '[tool]\ngrace_kp = {domain = "code"}',
        'tool.grace_kp.domain="code"',
    ):
        (folder / "pyproject.toml").write_text(text)
        assert "code" == load(folder).domain


def test_the_nearest_file_wins(folder):
    """The search goes upwards and ends at the first file that speaks of us."""
    (folder.parent.parent / "grace_kp.toml").write_text('domain = "far"\nmax_text = 100')
    assert "far" == load(folder).domain
    (folder.parent / "pyproject.toml").write_text('[tool.grace_kp]\ndomain = "near"')
    assert ("near", 8_192) == (load(folder).domain, load(folder).max_text)
    (folder / "pyproject.toml").write_text('[project]\nname = "not-ours"\n# grace_kp is only mentioned')
    assert "near" == load(folder).domain


def test_the_working_directory_is_where_the_search_begins(folder, monkeypatch):
    (folder / "grace_kp.toml").write_text('domain = "here"')
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GRACE_KP_PROFILE", "strict")
    settings = Settings.load()
    assert ("here", "strict") == (settings.domain, settings.profile)


def test_a_working_directory_that_is_gone_is_an_error_with_a_way_out(folder, monkeypatch):
    """Its parents may have stated policies; a file that is named by its absolute path needs no working directory."""
    config = folder.parent / "empty.toml"
    config.write_text("")
    monkeypatch.chdir(folder)
    folder.rmdir()
    for environ in ({}, {"GRACE_KP_CONFIG": "relative.toml"}):
        with pytest.raises(
            SettingsError, match="set GRACE_KP_CONFIG to the absolute path of a file, which may be empty"
        ):
            Settings.load(environ=environ)
    assert Settings() == Settings.load(environ={"GRACE_KP_CONFIG": str(config)})


# Names


OF_TYPE = {
    "bool": "0", "int": "64", "float": "0.5", "str": "private", "str | None": "memory:", "Policies": "a=deny",
    "dict[str, tuple[str, ...]]": "ana=finance", "dict[str, tuple[float, str]]": "gemini-*=0.3 USD",
}  # fmt: skip
OF_NAME = {
    "judge": "never", "unmeasured": "silent", "judge_language": "ja", "overflow": "wait", "durability": "bounded", "profile": "strict",
    "file_mode": "660", "on_mismatch": "tighten", "on_alarm": "confirm",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_an_environment_variable(folder, name):
    set_with_it = [other for other in NAMES if name.startswith("threshold_") and other.startswith("threshold_")] or [
        name
    ]
    text = OF_NAME.get(name) or OF_TYPE[Settings.__dataclass_fields__[name].type]
    settings = load(folder, {f"GRACE_KP_{other.upper()}": text for other in set_with_it})
    assert {other: f"environment variable GRACE_KP_{other.upper()}" for other in set_with_it} == settings.source


@pytest.mark.parametrize(
    ("name", "hint"),
    [("samplerate", "did you mean 'sample_rate'?"), ("domian", "'domain'"), ("zzz", "known are approval_link, ")],
)
def test_an_unknown_name_is_refused_with_a_hint(folder, name, hint):
    """From a keyword, the environment or a file alike, naming the place."""
    said = refusal(folder, **{name: 1})
    assert f"unknown setting '{name}' (keyword)" in said
    assert hint in said
    said = refusal(folder, {f"GRACE_KP_{name.upper()}": "1"})
    assert f"(environment variable GRACE_KP_{name.upper()})" in said
    assert hint in said
    (folder / "grace_kp.toml").write_text(f"{name} = 1")
    said = refusal(folder)
    assert str(folder / "grace_kp.toml") in said
    assert hint in said


@pytest.mark.parametrize("prefix", ["GRACEKP_", "GRACE-KP-", "grace_kp_", "GRACE_KP"])
@pytest.mark.parametrize("setting", ["POLICIES", "JUDGE_CACHE", "CONFIG"])
def test_a_variable_whose_name_is_nearly_right_is_refused(folder, prefix, setting):
    variable = prefix + (setting if prefix.isupper() else setting.lower())
    expected = f"environment variable {variable} is not read; did you mean GRACE_KP_{setting}?"
    assert expected == refusal(folder, {variable: "wire=deny"})


@pytest.mark.parametrize("blank", ["", " , ", "\n"])
def test_an_empty_variable_adds_nothing(folder, blank):
    """Whatever the setting: as in a compose file whose own variable is not set."""
    (folder / "grace_kp.toml").write_text('domain = "file"\n[policies]\nwire = "deny"\n')
    settings = load(
        folder, {f"GRACE_KP_{name.upper()}": blank for name in NAMES} | {"GRACE_KP_CONFIG": blank.strip(" ,")}
    )
    assert load(folder) == settings
    assert ("file", {"wire": "deny"}) == (settings.domain, settings.policies)


def test_a_variable_must_be_utf8(folder):
    """Bytes that are none would only fail when a run is stored."""
    for name in ("domain", "policies", "store", "webhook_url"):
        expected = f"{name} (environment variable GRACE_KP_{name.upper()}) must be UTF-8, not 'a\\udcff'"
        assert expected == refusal(folder, {f"GRACE_KP_{name.upper()}": "a\udcff"})


# Values


@pytest.mark.parametrize("name", ["enabled", "capture_input", "capture_output"])
def test_switches(folder, name):
    """1 and 0, and the usual words for them, in any case."""
    variable = f"GRACE_KP_{name.upper()}"
    for word in ("1", "true", "Yes", " on "):
        assert getattr(load(folder, {variable: word}), name) is True
    for word in ("0", "FALSE", "no", "off"):
        assert getattr(load(folder, {variable: word}), name) is False
    assert getattr(load(folder, **{name: False}), name) is False
    for bad in ("2", "maybe", "nein"):
        assert f"{name} (environment variable {variable}) must be 1 or 0, not {bad!r}" == refusal(
            folder, {variable: bad}
        )
    for bad in (2, 0.0, [], b"1"):
        assert f"{name} (keyword {name}) must be 1 or 0" in refusal(folder, **{name: bad})


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("sample_rate", 0, 1), ("max_text", 64, 1 << 24), ("gate_timeout", 0, 10**9),
    ],
)  # fmt: skip
def test_numbers_have_ranges(folder, name, low, high):
    """Both ends belong to the range; the message gives it, and the value seen."""
    variable = f"GRACE_KP_{name.upper()}"
    for good in (low, high):
        assert good == getattr(load(folder, {variable: str(good)}), name)
        assert good == getattr(load(folder, **{name: good}), name)
    for bad in (low - 1, high + 1):
        assert f"must be between {low} and {high}, not '{bad}'" in refusal(folder, {variable: str(bad)})
        assert f"must be between {low} and {high}, not {bad}" in refusal(folder, **{name: bad})


@pytest.mark.parametrize("name", ["sample_rate", "max_text"])
def test_what_is_no_number_is_refused(folder, name):
    """Texts, switches, NaN, infinities and numbers without end, each in one line."""
    for bad in ("many", "nan", "-inf", "9" * 10_000, "1e999"):
        assert f"{name} (environment variable" in refusal(folder, {f"GRACE_KP_{name.upper()}": bad})
    for bad in (True, [], object(), float("nan"), float("inf"), 10**5_000):
        assert f"{name} (keyword {name}) must be" in refusal(folder, **{name: bad})


def test_a_whole_number_is_not_cut_from_a_fraction(folder):
    assert 100 == load(folder, max_text=100.0).max_text
    assert "max_text (keyword max_text) must be a whole number, not 100.5" == refusal(folder, max_text=100.5)
    assert "max_text (environment variable GRACE_KP_MAX_TEXT) must be a whole number, not '100.5'" == refusal(
        folder, {"GRACE_KP_MAX_TEXT": "100.5"}
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("on_alarm", ["report", "confirm"]),
        ("privacy_level", ["aggregated", "federated", "private"]),
    ],
)
def test_choices(folder, name, words):
    for word in words:
        assert word == getattr(load(folder, **{name: word}), name)
    for bad in ("", "Grace", "public", words[0].upper(), 3):
        said = refusal(folder, **{name: bad})
        assert f"{name} (keyword {name}) must be" in said
        assert repr(bad) in said
    assert f"must be one of {', '.join(words)}, not 'public'" in refusal(folder, **{name: "public"})


@pytest.mark.parametrize("profile", ["grace", "strict", "mine.json", "/there/mine.JSON", "日本.json"])
def test_a_profile_is_a_name_or_a_path(folder, profile):
    """A keyword and the environment name paths as they are; a file names them from its own folder."""
    assert profile == load(folder, profile=profile).profile == load(folder, {"GRACE_KP_PROFILE": profile}).profile
    file = folder.parent / "grace_kp.toml"
    file.write_text(f'profile = "{profile}"\n', encoding="utf-8")
    expected = profile if profile in {"grace", "strict"} else str(folder.parent / profile)
    assert expected == load(folder, {"GRACE_KP_CONFIG": str(file)}).profile


def test_thresholds_in_every_place(folder):
    """Numbers from 0 to 1, and `never` for infinity, which TOML may also spell inf."""
    settings = load(folder, {"GRACE_KP_THRESHOLD_SILENT": "never", "GRACE_KP_THRESHOLD_NOTIFY": "0.75"})
    assert (math.inf, 0.75, 0.4) == (settings.threshold_silent, settings.threshold_notify, settings.threshold_confirm)
    file = folder / "grace_kp.toml"
    file.write_text('threshold_silent = inf\nthreshold_notify = "never"\nthreshold_confirm = 1\n')
    settings = load(folder, {"GRACE_KP_CONFIG": str(file)})
    assert (math.inf, math.inf, 1) == (settings.threshold_silent, settings.threshold_notify, settings.threshold_confirm)
    file.unlink()
    assert 0.95 == load(folder, threshold_silent=0.95, threshold_notify=0.5, threshold_confirm=0).threshold_silent


@pytest.mark.parametrize("bad", ["always", "nan", "1.1"])
def test_a_bad_threshold_in_the_environment_is_named(folder, bad):
    expected = (
        f'(environment variable GRACE_KP_THRESHOLD_CONFIRM) must be a number from 0 to 1, or "never"; not {bad!r}'
    )
    assert f"threshold_confirm {expected}" == refusal(folder, {"GRACE_KP_THRESHOLD_CONFIRM": bad})


def test_thresholds_out_of_order_are_named_with_their_places(folder):
    assert (
        "threshold_silent 0.5 (environment variable GRACE_KP_THRESHOLD_SILENT) must not be below "
        "threshold_notify 0.7 (default); set both, or change one"
    ) == refusal(folder, {"GRACE_KP_THRESHOLD_SILENT": "0.5"})
    file = folder / "file.toml"
    file.write_text('threshold_confirm = "never"\n')
    assert (
        f"threshold_notify 0.7 (default) must not be below threshold_confirm never ({file}); set both, or change one"
    ) == refusal(folder, {"GRACE_KP_CONFIG": str(file)})


def test_policies_in_the_environment(folder):
    """name=floor pairs with commas between; blanks do not matter. A file has a table."""
    environ = {"GRACE_KP_POLICIES": " delete_* = confirm, wire=deny ,,"}
    assert {"delete_*": "confirm", "wire": "deny"} == load(folder, environ).policies
    (folder / "grace_kp.toml").write_text('[policies]\n"delete_*" = "confirm"\nwire = "deny"\n')
    assert {"delete_*": "confirm", "wire": "deny"} == load(folder).policies


def test_reviewers_have_groups(folder):
    """As pairs in the environment, as a table of lists in a file; one group may be a text."""
    found = {"ana": ("finance", "legal"), "bob": ("finance",)}
    assert found == load(folder, {"GRACE_KP_REVIEWERS": " ana = finance + legal, bob=finance"}).reviewers
    (folder / "people.toml").write_text('[reviewers]\nana = ["finance", "legal"]\nbob = "finance"\n')
    assert found == load(folder, {"GRACE_KP_CONFIG": str(folder / "people.toml")}).reviewers


def test_prices_have_a_currency(folder):
    """As pairs in the environment, as texts in a file, as pairs of a number and a currency in code."""
    found = {"gemini-*": (0.3, "USD"), "local": (0.0, "EUR")}
    assert found == load(folder, {"GRACE_KP_PRICES": " gemini-* = 0.30 USD, local=0 EUR"}).prices
    assert found == load(folder, prices=found).prices
    (folder / "grace_kp.toml").write_text('[prices]\n"gemini-*" = "0.3 USD"\nlocal = [0, "EUR"]\n')
    assert found == load(folder).prices


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("reviewers", "ana", "must read name=group+group,name=group+group, not 'ana'"),
        ("reviewers", ["ana"], "must be a table of name to list of groups"),
        ("reviewers", {"ana": [3]}, "'ana' must have a list of groups, not a list of 1"),
        ("reviewers", {"ana": ["a", " "]}, "'ana' must have a list of groups"),
        ("prices", "gemini", "must read name=price currency,name=price currency, not 'gemini'"),
        ("prices", {"gemini": 0.3}, "the price of 'gemini' must read like '0.30 USD', for a million tokens, not 0.3"),
        ("prices", {"gemini": "nan USD"}, "not 'nan USD'"),
        ("prices", {"gemini": [True, "USD"]}, "must read like"),
        ("policies", "delete", "must read name=floor,name=floor, not 'delete'"),
        ("policies", "=deny", "must have non-empty action names, not ''"),
        ("policies", "wire=ask", "the floor of 'wire' must be one of silent, notify, confirm, escalate, deny, not 'ask'"),
        ("policies", "wire=DENY", "not 'DENY'"),
        ("policies", "wire=deny,wire=silent", "name 'wire' twice"),
        ("policies", {"wire": 1}, "not 1"),
        ("policies", {"wire": {"money": "deny"}}, "may state floor and unmeasured, not 'money'; an action whose name has a dot is written"),
        ("policies", {"wire": {"unmeasured": "deny"}}, "unmeasured of 'wire' must be one of silent, notify, confirm, not 'deny'"),
        ("policies", {"wire": {}}, "'wire' must state floor or unmeasured"),
        ("policies", ["wire"], "must be a table of action name to floor, not a list of 1"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_tables_are_refused(folder, setting, value, message):
    """A gate that somebody thinks is there must not be missing for a spelling mistake."""
    found = refusal(folder, **{setting: value})
    assert found.startswith(f"{setting} (keyword {setting})")
    assert message in found


def test_policies_are_a_copy(folder):
    given = {"wire": "deny"}
    settings = load(folder, policies=given)
    given.clear()
    assert {"wire": "deny"} == settings.policies


# Files that cannot be used


def test_a_bad_value_in_a_file_names_the_file(folder):
    path = folder / "grace_kp.toml"
    for text in ("domain = 3", "domain = 2026-01-02", "sample_rate = [1]", "enabled = 7", "policies = 1"):
        path.write_text(text)
        assert f"({path}) must be" in refusal(folder)


# The file in GRACE_KP_CONFIG


def test_a_named_file_replaces_the_search(folder, monkeypatch):
    """Its path is relative to the working directory, and a pyproject.toml has its table."""
    (folder / "grace_kp.toml").write_text('domain = "found"\n[policies]\nwire = "deny"\n')
    (folder / "pyproject.toml").write_text(
        '[tool.grace_kp]\nunmeasured = "silent"\ngemini_base_url = "https://gateway"\n'
    )
    (folder / "other.toml").write_text('domain = "named"\n')
    monkeypatch.chdir(folder)
    for named in ("other.toml", " ./other.toml ", str(folder / "other.toml")):
        settings = Settings.load(environ={"GRACE_KP_CONFIG": named})
        assert ("named", {}, str(folder / "other.toml")) == (
            settings.domain,
            settings.policies,
            settings.source["domain"],
        )
    settings = Settings.load(environ={"GRACE_KP_CONFIG": "pyproject.toml", "GRACE_KP_DOMAIN": "environment"})
    assert ("environment", "silent", "https://gateway") == (
        settings.domain,
        settings.unmeasured,
        settings.gemini_base_url,
    )


def test_a_named_file_must_exist_and_be_readable(folder, monkeypatch):
    (folder / "pyproject.toml").write_text('[project]\nname = "grace_kp"\n')
    os.mkfifo(folder / "pipe")
    (folder / "link.toml").symlink_to("nothing")
    monkeypatch.chdir(folder)
    for named, message in (
        ("none.toml", f"GRACE_KP_CONFIG names {folder / 'none.toml'}, which does not exist"),
        ("pyproject.toml", f"GRACE_KP_CONFIG names {folder / 'pyproject.toml'}, which has no table [tool.grace_kp]"),
        (".", f"{folder}: cannot be read: it is a directory"),
        ("pipe", f"{folder / 'pipe'}: cannot be read: it is not a regular file"),
        (os.devnull, f"{os.devnull}: cannot be read: it is not a regular file"),
        ("link.toml", f"{folder / 'link.toml'}: cannot be read: it is a link to nothing"),
        ("~nobody-has-this-name/x", "GRACE_KP_CONFIG '~nobody-has-this-name/x' cannot be found"),
        ("x" * 300, "cannot be read: File name too long"),
    ):
        assert message in refusal(folder, {"GRACE_KP_CONFIG": named})


# Files that are found by searching


def test_every_setting_is_on_one_side():
    """A new setting must be listed as one that a found file may state, may not state, or may only make stricter."""
    assert {*NAMES} == {*FOUND_FILES}
    assert all(isinstance(rule, bool) or callable(rule) for rule in FOUND_FILES.values())
    assert all(rule(getattr(Settings(), name)) is not None for name, rule in FOUND_FILES.items() if callable(rule))


REFUSED = {
    "unmeasured": '"confirm"', "threshold_silent": '"never"', "threshold_notify": "0.5", "threshold_confirm": "0.4", "profile": '"strict"',
    "profile_digest": f'"sha256:{"0" * 64}"', "on_mismatch": '"tighten"', "audit_rate": "0.001", "reviewers": '{ana = ["finance"]}', "judge_cache": '"cache.db"',
    "gemini_model": '"kind"', "gemini_base_url": '"https://evil.example"', "openai_base_url": '"https://evil.example"', "embedding_model": '"model"', "registry_url": '"https://evil.example"',
    "webhook_url": '"https://evil.example"', "approval_link": '"https://evil.example/{id}"',
}  # fmt: skip
LOOSER = {
    "privacy_level": None, "capture_input": None, "capture_output": None, "on_alarm": None, "enabled": None, "judge": None,  # the default is the mildest value
    "visibility": '"network"', "file_mode": '"660"', "fetch_models": "true", "gate_timeout": "1", "judge_timeout": "0.01",
    "judge_samples": "9", "judge_combined": "false", "judge_attempts": "1", "judge_calls_per_minute": "1", "judge_tokens_per_minute": "1", "judge_calls_per_run": "1", "judge_tokens_per_run": "1",
}  # fmt: skip
STRICTER = {
    "privacy_level": '"federated"', "capture_input": "false", "capture_output": "false", "on_alarm": '"confirm"', "visibility": '"private"',
    "enabled": "false", "judge": '"never"', "file_mode": '"600"', "fetch_models": "false", "gate_timeout": "900", "judge_timeout": "60", "judge_attempts": "9",
    "judge_samples": "1", "judge_combined": "true",
    "judge_calls_per_minute": "0", "judge_tokens_per_minute": "0", "judge_calls_per_run": "21", "judge_tokens_per_run": "0",
}  # fmt: skip


def test_the_examples_are_complete():
    assert {name for name, rule in FOUND_FILES.items() if rule is False} == {*REFUSED}
    assert {name for name, rule in FOUND_FILES.items() if callable(rule)} == {*LOOSER} == {*STRICTER}


@pytest.mark.parametrize("file", ["grace_kp.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("name", "value"), [*REFUSED.items(), *((name, value) for name, value in LOOSER.items() if value)]
)
def test_a_found_file_cannot_make_a_gate_milder_or_send_anything_elsewhere(folder, file, name, value):
    """An agent can write into its folder. The message shows the way back: code, the environment, or vouching for the file."""
    line = f"{name} = {value}\n"
    (folder / file).write_text(line if file == "grace_kp.toml" else f"[tool.grace_kp]\n{line}")
    message = refusal(folder)
    assert message.startswith(f"{name} ({folder / file}) cannot be ")
    assert message.endswith(
        "in a file that is found by searching folders, because an agent may have written it; "
        f"set it in code or as GRACE_KP_{name.upper()}, or vouch for the file with GRACE_KP_CONFIG={file}"
    )
    environ = {"GRACE_KP_CONFIG": str(folder / file)} | {"GRACE_KP_THRESHOLD_SILENT": "never"}
    assert name in load(folder, environ).source
    (folder / "below").mkdir()
    assert refusal(folder / "below").endswith(f"GRACE_KP_CONFIG={folder / file}")


@pytest.mark.parametrize(("name", "value"), STRICTER.items())
def test_a_found_file_may_tighten(folder, name, value):
    """And a nearer file, which may be planted, does not hide it."""
    (folder.parent / "grace_kp.toml").write_text(f"{name} = {value}\n")
    (folder / "grace_kp.toml").write_text("")
    strict = getattr(load(folder), name)
    default = getattr(Settings(), name)
    assert strict == getattr(load(folder.parent), name)
    (folder / "grace_kp.toml").write_text(
        f"{name} = {str(default).lower() if not isinstance(default, str) else repr(default)}\n"
    )
    assert strict == getattr(load(folder), name)


def test_a_nearer_file_does_not_hide_policies(folder):
    """Policies of all found files are combined name by name to the stricter, whatever else the nearest states."""
    top, middle = folder.parent.parent, folder.parent
    (top / "pyproject.toml").write_text('[tool.grace_kp.policies]\nwire = "deny"\nread = "notify"\n')
    (middle / "grace_kp.toml").write_text('[policies]\nwire = "silent"\nread = "confirm"\n')
    (middle / "pyproject.toml").write_text('[tool.grace_kp.policies]\nsend = "escalate"\n')
    (folder / "grace_kp.toml").write_text('domain = "near"\n')
    settings = load(folder, {"GRACE_KP_POLICIES": "wire=confirm,read=escalate"})
    assert {"wire": "deny", "read": "escalate", "send": "escalate"} == settings.policies
    assert 4 == len(settings.source["policies"].split(", "))
    assert settings == pickle.loads(pickle.dumps(settings))


def test_a_policy_may_be_a_table(folder):
    """With a floor, the level of calls about which nothing was measured, or both; a found file states floors only."""
    text = '[policies.refund]\nfloor = "notify"\nunmeasured = "notify"\n[policies.mail]\nunmeasured = "silent"\n[policies]\nwire.floor = "deny"\n'
    (folder / "vouched.toml").write_text(text)
    environ = {"GRACE_KP_CONFIG": str(folder / "vouched.toml")}
    tables = {"refund": {"floor": "notify", "unmeasured": "notify"}, "mail": {"unmeasured": "silent"}}
    assert {**tables, "wire": "deny"} == load(folder, environ).policies
    assert {**tables, "refund": {"floor": "confirm", "unmeasured": "notify"}, "wire": "deny"} == load(
        folder, {**environ, "GRACE_KP_POLICIES": "refund=confirm"}
    ).policies
    (folder / "grace_kp.toml").write_text('[policies]\nwire = {floor = "deny"}\n')
    assert {"wire": "deny"} == load(folder).policies
    (folder / "grace_kp.toml").write_text(text)
    assert f"policies ({folder / 'grace_kp.toml'}) cannot state `unmeasured` in a file that is found" in refusal(folder)


def test_the_strictest_statement_about_what_was_not_measured_holds(folder):
    """Of code, the environment and a named file; its source is the one that counts."""
    (folder / "file.toml").write_text('unmeasured = "notify"\n')
    environ = {"GRACE_KP_CONFIG": str(folder / "file.toml"), "GRACE_KP_UNMEASURED": "confirm"}
    settings = load(folder, environ, unmeasured="silent")
    assert ("confirm", "environment variable GRACE_KP_UNMEASURED") == (
        settings.unmeasured,
        settings.source["unmeasured"],
    )
    assert "silent" == load(folder, unmeasured="silent").unmeasured


def test_a_found_file_names_a_store_in_its_own_folder_or_the_users(folder, monkeypatch):
    """Anywhere else, the runs of this user would be written where the author of the file wants them."""
    monkeypatch.chdir(folder)
    (folder / "out").symlink_to(folder.parent.parent)
    for url in (
        "sqlite:///t.db",
        "sqlite:///data/t.db",
        f"sqlite:///{folder}/t.db",
        "sqlite:///~/.local/share/grace_kp/t.db",
    ):
        (folder / "grace_kp.toml").write_text(f'store = "{url}"\n')
        assert url == load(folder).store
    for url in (
        "sqlite:///../t.db",
        "sqlite:///out/t.db",
        f"sqlite:///{folder.parent}/t.db",
        "sqlite:////tmp/t.db",
        "sqlite:///~/t.db",
    ):
        (folder / "grace_kp.toml").write_text(f'store = "{url}"\n')
        assert "cannot name a file outside its own folder and that of the default store in a file" in refusal(folder)
        assert url == load(folder, {"GRACE_KP_CONFIG": "grace_kp.toml"}).store
    for url in ("memory:", "memory:?max_traces=500", "memory:?max_mb=0.5&max_traces=1"):
        (folder / "grace_kp.toml").write_text(f'store = "{url}"\n')
        assert "cannot be in memory, which keeps no runs and no requests for approval, in a file" in refusal(folder)
        assert url == load(folder, {"GRACE_KP_CONFIG": "grace_kp.toml"}).store


# The address of a store


KNOWN = "; known are memory: or sqlite:///path.db"
IN_MEMORY = f"{KNOWN}; for a store in memory, write memory:"
IN_A_FILE = f"{KNOWN}; for a file, write sqlite:/// and its path, without blanks at the ends"
OPTIONS = "unknown option or value; max_traces is a whole number from 1, and max_mb a number above 0"
NO_POSTGRES = f"this version has no PostgreSQL store{KNOWN}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory", IN_MEMORY), ("MEMORY:", IN_MEMORY), ("memory://", IN_MEMORY), (" memory:", IN_MEMORY), ("memory: ", IN_MEMORY), (":memory:", KNOWN),
        ("memory:?max=3", OPTIONS), ("memory:?max_traces=0", OPTIONS), ("memory:?max_traces=", OPTIONS), ("memory:?max_mb=nan", OPTIONS), ("memory:?", OPTIONS),
        ("x.db", f"{KNOWN}; for a file, write sqlite:///x.db"), ("/data/x.db", f"{KNOWN}; for a file, write sqlite:////data/x.db"),
        ("sqlite:", IN_A_FILE), ("sqlite://x.db", IN_A_FILE), ("sqlite:x.db", IN_A_FILE), ("SQLite:///x.db", IN_A_FILE), ("sqlite:///x.db ", IN_A_FILE),
        ("sqlite:///x\0.db", IN_A_FILE), ("sqlite+aiosqlite:///x.db", KNOWN), ("sqlite3:///x.db", KNOWN), ("file:x.db", KNOWN),
        ("mysql://h/x", KNOWN), ("postgresql://h/x", NO_POSTGRES), ("postgres://h/x", NO_POSTGRES), ("postgresql+psycopg://h/x", KNOWN),
        ("sqlite:///", " names no file; use memory: for a store in memory, or sqlite:///path.db"),
        ("sqlite:///:memory:", " names no file; use memory: for a store in memory, or sqlite:///path.db"),
        ("sqlite:///x.db?mode=ro", f": options of SQLite are not supported{KNOWN}"), ("sqlite:///file:x.db", f": options of SQLite are not supported{KNOWN}"),
        ("sqlite:///.", f" must name a file, not a directory or a device{KNOWN}"), ("sqlite:///new/", f" must name a file, not a directory or a device{KNOWN}"),
        ("sqlite:////dev/null", f" must name a file, not a directory or a device{KNOWN}"),
        (f"sqlite:///{'x' * 300}", f" cannot be used: File name too long{KNOWN}"), ("sqlite:///~nobody-has-this-name/x.db", KNOWN),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_refused_at_once(folder, url, message):
    """Runs would be lost otherwise. The message names the forms that work."""
    found = refusal(folder, store=url)
    assert found.startswith("store (keyword store): ")
    assert found.endswith(message)


@pytest.mark.parametrize("scheme", ["mysql", "postgresql+psycopg", "memory", "sqlite"])
def test_a_password_in_an_address_is_never_shown(folder, scheme):
    for url in (f"{scheme}://ana:s3cret@host/x", f"{scheme}://:s3cret@host"):
        for message in (refusal(folder, store=url), refusal(folder, {"GRACE_KP_STORE": url})):
            assert "s3cret" not in message


@pytest.mark.parametrize("content", [b"x", b"secret notes\n" * 100, b"SQLite format 2\0" + b"x" * 5_000, b"\0" * 5_000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(folder, content):
    """Whether code, the environment or a file names it. Its content and permissions stay, and nothing is created beside it."""
    notes = folder / "notes #1.txt"
    notes.write_bytes(content)
    notes.chmod(0o644)
    url = f"sqlite:///{notes}"
    with pytest.raises(gk.SettingsError, match=r"store \(keyword store\): .* cannot be used: file is not a database"):
        gk.Grace(store=url)
    assert "store (environment variable GRACE_KP_STORE): " in refusal(folder, {"GRACE_KP_STORE": url})
    with pytest.raises(gk.StoreError, match="file is not a database"):
        open_store(url)
    assert (content, 0o100644, [notes]) == (notes.read_bytes(), notes.stat().st_mode, [*folder.iterdir()])


def test_a_file_of_the_kernel_is_no_store(folder):
    """Such as one below /proc, whose size is 0 like that of a new database."""
    (folder / "t.db").symlink_to("/proc/version")
    for path in ("/proc/version", "/proc/self/maps", "/proc/self/new.db", "t.db"):
        message = refusal(folder, store=f"sqlite:///{folder / path}")
        assert message.startswith("store (keyword store): ")
        assert message.endswith(" cannot be used: it is a file of the kernel")


def test_an_empty_file_and_a_database_are_stores(folder):
    """Also while this process writes: the check releases none of its locks."""
    file = folder / "t.db"
    file.touch()
    assert f"sqlite:///{file}" == load(folder, store=f"sqlite:///{file}").store
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("CREATE TABLE other (x)")
    connection.execute("BEGIN IMMEDIATE")
    assert f"sqlite:///{file}" == load(folder, store=f"sqlite:///{file}").store
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    ran = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=False)
    assert "database is locked" in ran.stderr
    connection.close()


# Anything at all

ENVIRONMENTS = st.dictionaries(
    st.sampled_from([f"GRACE_KP_{name.upper()}" for name in NAMES]) | st.text().map(lambda end: "GRACE_KP_" + end),
    st.text()
    | st.integers().map(str)
    | st.floats().map(str)
    | st.sampled_from(["1", "private", "strict", "a=deny", "b=b"]),
    max_size=4,
)
KEYWORDS = st.dictionaries(
    st.sampled_from(NAMES),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.lists(st.text())
    | st.dictionaries(st.text() | st.integers(), st.sampled_from(["deny", "confirm", "x", 1, None])),
    max_size=4,
)  # fmt: skip


def outcome_of(environ, given):
    try:
        return "", Settings.load(environ=environ, folder=Path(os.sep), **given)
    except SettingsError as error:
        return str(error), None


@given(ENVIRONMENTS, KEYWORDS)
def test_whatever_is_set_gives_settings_or_a_settings_error(environ, given):
    """Nothing else comes out, the error is one line, and settings that come out are in range."""
    said, settings = outcome_of(environ, given)
    if settings is None:
        assert 1 == len(said.splitlines())
        return
    assert 0 <= settings.sample_rate <= 1
    assert settings.domain
    assert settings.profile in {"grace", "strict"}
    assert all(isinstance(getattr(settings, name), bool) for name in ("enabled", "capture_input", "capture_output"))
    assert settings.threshold_silent >= settings.threshold_notify >= settings.threshold_confirm >= 0
    assert set(settings.policies.values()) <= {"silent", "notify", "confirm", "escalate", "deny"}
