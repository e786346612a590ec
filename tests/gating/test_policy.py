"""A policy is checked where it is written, its names too; and time that runs out is the only reason to proceed without an answer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.gating import PolicySet, Rules
from grace_kp.gating._policy import is_misspelt, looks_like, matches
from grace_kp.settings import Settings, check_name
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from tests.exhaustive import examples
from tests.gating.inboxes import gated

R = gk.InterventionResponse
both = pytest.mark.parametrize("is_async", [False, True])
takers = pytest.mark.parametrize(
    "take", [gk.Policy, gk.InterventionHandler, lambda **stated: make_grace().gate(**stated)(print)]
)


@pytest.mark.parametrize("setting", ["no", "", 0, 1])
@pytest.mark.parametrize("take", [gk.Policy, gk.InterventionHandler])
def test_what_only_looks_like_a_boolean_is_refused(take, setting):
    """The string "no" is true in Python."""
    with pytest.raises(ValueError, match="auto_proceed_on_timeout must be True or False, not"):
        take(auto_proceed_on_timeout=setting)
    with pytest.raises(ValueError, match="not None"):
        gk.InterventionHandler(auto_proceed_on_timeout=None)


@pytest.mark.parametrize("timeout", ["5", True, -1, float("nan")])
@takers
def test_a_timeout_is_a_number(take, timeout):
    with pytest.raises(ValueError, match="timeout must be 0 or more seconds, or None, not"):
        take(timeout=timeout)


def test_policies_of_several_places_are_combined_to_the_stricter():
    """What matches in one place never replaces what matches in another, whichever name is more exact."""
    policies = PolicySet({"*": "deny"}, {"wire": "silent", "read_*": "confirm"}, {}, {"wire": gk.Policy(quorum=2)})
    assert gk.Policy(floor="deny", quorum=2) == policies.for_action("wire")
    assert gk.Policy(floor="deny") == policies.for_action("read_mail") == policies.for_action("other")
    assert gk.Policy(floor="confirm") == PolicySet({}, {"a": "confirm"}, {"b": "deny"}).entry_for("a")


def test_the_environment_makes_no_policy_of_code_milder(monkeypatch):
    monkeypatch.setenv("GRACE_KP_POLICIES", "wire=silent,mai*=silent,read=deny")
    grace = make_grace(policies={"*": "deny", "m*": gk.Policy(floor="deny")}, unmeasured="silent")
    for action in ("wire", "mail"):
        with pytest.raises(gk.ActionDenied):
            grace.gate(name=action)(lambda: None)()
    milder = make_grace(policies={"read": "silent"}, unmeasured="silent")
    with pytest.raises(gk.ActionDenied):
        milder.gate(name="read")(lambda: None)()


def nobody(request):
    threading.Event().wait()


async def nobody_async(request):
    await asyncio.Event().wait()


def says_so(request):
    return R("cancel", timeout_reached=True)


@both
@pytest.mark.parametrize("setting", [None, False, True])
@pytest.mark.parametrize(
    "reviewer", [nobody, nobody_async, says_so, lambda request: R("proceed", timeout_reached=True)]
)
def test_time_that_runs_out_proceeds_only_where_that_is_wanted(is_async, reviewer, setting):
    """Whether the gate keeps the time or the reviewer does; otherwise it is an outcome of its own, which is no refusal."""
    policy = gk.Policy(floor="confirm", timeout=0.01, auto_proceed_on_timeout=setting)
    act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, policy=policy)
    with capture() as captured:
        if setting:
            assert "done" == act("ana")
        else:
            with pytest.raises(gk.ActionTimedOut, match=r"no answer arrived within 0\.01 s") as error:
                act("ana")
            assert error.value.response.timeout_reached
    (entry,) = captured.only.grace["decisions"]
    expected = ("executed", "proceed", ["ana"]) if setting else ("timed_out", "cancel", [])
    assert expected == (entry["outcome"], entry["response"]["action"], ran)
    assert entry["response"]["timeout_reached"]


def times_out_itself(request):
    raise TimeoutError("the chat did not answer")


NO_TIMEOUT = {
    "True": lambda request: True,
    "refusal": lambda request: R("cancel"),
    "its own timeout": times_out_itself,
    "no reviewer": None,
    "not callable": 5,
    "words": lambda request: R("input", user_input="no"),
}


@both
@pytest.mark.parametrize("name", NO_TIMEOUT)
def test_nothing_else_proceeds_or_counts_as_a_timeout(is_async, name):
    policy = gk.Policy(floor="confirm", timeout=30, auto_proceed_on_timeout=True)
    act, ran = gated(make_grace(reviewer=NO_TIMEOUT[name]), is_async=is_async, policy=policy)
    with capture() as captured, pytest.raises(gk.ActionNotApproved) as error:
        act("ana")
    assert [] == ran
    assert not isinstance(error.value, gk.ActionTimedOut)
    assert "no answer arrived" not in str(error.value)
    assert error.value.response.timeout_reached is False
    entry = captured.only.grace["decisions"][0]
    assert entry["outcome"] == ("redirected" if name == "words" else "cancelled")
    assert entry["response"]["timeout_reached"] is False


def test_floors():
    assert "confirm" == gk.Policy(floor=gk.InterventionLevel.CONFIRM).floor
    assert str is type(gk.Policy(floor=gk.InterventionLevel.CONFIRM).floor)
    assert [False] * 5 + [True] == [gk.Policy(floor=floor).denies for floor in FLOORS]
    for floor in ("strict", "", "DENY", 5):
        known = "silent, notify, confirm, escalate, deny"
        with pytest.raises(ValueError, match=f"floor must be one of {known}, not {floor!r}"):
            gk.Policy(floor=floor)


@pytest.mark.parametrize("quorum", [0, 101, True, 1.5])
def test_a_quorum_is_a_number_of_people(quorum):
    with pytest.raises(ValueError, match="quorum must be a whole number from 1 to 100, not"):
        gk.Policy(quorum=quorum)
    assert (1, 100) == (gk.Policy(quorum=1).quorum, gk.Policy(quorum=100).quorum)
    with pytest.raises(TypeError):
        gk.Policy(thresholds=0.5)


def test_a_policy_of_a_floor():
    policy = gk.Policy(floor="confirm", timeout=5)
    assert policy is gk.Policy.of(policy)
    assert gk.Policy(floor="confirm") == gk.Policy.of("confirm")
    assert gk.Policy() == gk.Policy.of(None)
    assert gk.Policy(floor="notify", unmeasured="silent") == gk.Policy.of({"floor": "notify", "unmeasured": "silent"})


VERSIONS = {
    "7d5fe23e5eb5": gk.Policy(),
    "911136104185": gk.Policy(floor="confirm", timeout=5),
    "e1a6ad8d87bb": gk.Policy(
        floor="confirm", timeout=5, auto_proceed_on_timeout=True, thresholds=gk.Thresholds(0.9, 0.7, 0.4)
    ),
    "34b9d8aad3a5": gk.Policy(reviewer=gk.ConsoleReviewer()),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_is_a_fingerprint_of_all_settings(version):
    assert version == VERSIONS[version].version


FLOORS = [None, "silent", "notify", "confirm", "escalate", "deny"]


@pytest.mark.parametrize("own", FLOORS)
@pytest.mark.parametrize("other", FLOORS)
def test_the_stricter_floor_holds(own, other):
    stricter = FLOORS[max(FLOORS.index(own), FLOORS.index(other))]
    policy = gk.Policy(floor=own, timeout=5)
    assert gk.Policy(floor=stricter, timeout=5) == policy.combined(gk.Policy(floor=other))
    assert gk.Policy(floor=stricter, timeout=5) == policy.at_least(other)
    assert gk.Policy(floor=stricter, timeout=5) == policy.at_least(gk.Policy(floor=other, timeout=9))


def test_settings_of_two_policies():
    """The shorter timeout and the higher thresholds hold, and the reviewer of the first; 0 seconds is a setting."""
    ana, ben = ScriptedReviewer(), ScriptedReviewer()
    one, two = gk.Thresholds(0.9, 0.8, 0.4), gk.Thresholds(0.95, 0.7, 0.5)
    full, other = gk.Policy(timeout=0, reviewer=ana, thresholds=one), gk.Policy(timeout=5, reviewer=ben, thresholds=two)
    assert (0, ana, gk.Thresholds(0.95, 0.8, 0.5)) == settings(full.combined(other))
    assert (0, ben, gk.Thresholds(0.95, 0.8, 0.5)) == settings(other.combined(full))
    assert full is gk.Policy().combined(full) is full.combined(gk.Policy())


def settings(policy):
    return policy.timeout, policy.reviewer, policy.thresholds


LACKS = "Evidence is missing or cannot be used, so the gate requires at least confirm:"


@pytest.mark.parametrize(
    ("level", "floor", "gaps", "reason", "expected"),
    [
        ("silent", None, (), "0.9.", ("silent", "0.9.")),
        ("silent", "confirm", (), "0.9.", ("confirm", "0.9, but the policy requires at least confirm.")),
        ("silent", "confirm", (), "", ("confirm", "The policy requires at least confirm.")),
        ("silent", "deny", (), "0.9.", ("silent", "0.9.")),
        ("silent", None, ("a", "b"), "0.9.", ("confirm", f"0.9. {LACKS} a; b.")),
        ("silent", "notify", ("a",), "0.9.", ("confirm", f"0.9, but the policy requires at least notify. {LACKS} a.")),
    ],
)
def test_the_strictest_level(level, floor, gaps, reason, expected):
    decision = gk.ActionDecision(gk.InterventionLevel(level), 0.5, reason)
    raised = Rules(gk.Policy(floor=floor), gk.Thresholds(), gaps).apply(decision)
    assert expected == (str(raised.level), raised.reason)


POLICIES = {
    "pay": "notify", "pay*": "deny", "*": "silent", "send_*": "confirm", "s*d_*": "deny", "get_?": "confirm", "get_??": "notify",
    "[ab]c": "escalate", "read": gk.Policy(timeout=5), "tie_a*": "notify", "tie_*b": "confirm", "tie*ab": "escalate",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        ("pay", "notify"), ("pay_all", "deny"), ("other", "silent"), ("send_mail", "confirm"), ("get_a", "confirm"), ("get_ab", "notify"),
        ("ac", "escalate"), ("cc", "silent"), ("read", None), ("Pay", "silent"), ("tie_ab", "escalate"), ("tie_a", "notify"),
    ],
)  # fmt: skip
def test_which_entry_matches(name, floor):
    """An exact name before globs, a glob with more characters of its own before others, then the stricter; case counts."""
    policies = PolicySet(POLICIES)
    assert floor == policies.entry_for(name).floor
    assert floor == policies.for_action(name).floor


def test_no_entry_or_equal_ones():
    """Where length and floor are the same, the order of the entries decides about the other settings."""
    first, second = gk.Policy(floor="confirm", timeout=1), gk.Policy(floor="confirm", timeout=2)
    assert first is PolicySet({"a*": first, "*a": second}).entry_for("aa")
    policies, own = PolicySet({"pay": "confirm"}), gk.Policy(floor="notify", timeout=5)
    assert policies.entry_for("send") is None
    assert gk.Policy() == policies.for_action("send") == PolicySet().for_action("send")
    assert own is policies.for_action("send", own)
    assert gk.Policy(floor="confirm", timeout=5) == policies.for_action("pay", own)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("strict", "floor must be one of"),
        (5, "a policy is a Policy or a floor, not int"),
        (None, "None states no policy; write a floor .* or leave it out"),
        ({"unmeasured": "deny"}, "unmeasured must be one of"),
        *((table, "a table of a policy has floor, unmeasured or both, not") for table in (
            {}, {"floor": None}, {"floor": "deny", "quorum": 2}, {"auto_proceed_on_timeout": True}, {3: 4},
        )),
    ],
)  # fmt: skip
def test_an_entry_that_is_no_policy_is_named(value, problem):
    with pytest.raises(ValueError, match=f"policy 'pay': {problem}"):
        PolicySet({"pay": value})


def test_places_that_cannot_be_combined_are_an_error_at_once():
    with pytest.raises(TypeError, match="policies are a mapping of action name to policy or floor, not str"):
        PolicySet("pay=deny")
    with pytest.raises(ValueError, match="none in common"):
        PolicySet({"pay": gk.Policy(group="finance")}, {"p*": gk.Policy(group="legal")})
    with pytest.raises(ValueError, match="must be a string, not tuple"):
        PolicySet({("wire",): "deny"})


AUTO = gk.Policy(floor="confirm", timeout=0, auto_proceed_on_timeout=True)


@pytest.mark.parametrize(
    ("other", "proceeds", "timeout"),
    [
        (gk.Policy(timeout=300), False, 0),
        (gk.Policy(thresholds=gk.Thresholds()), False, 0),
        (gk.Policy(quorum=2), False, 0),
        (gk.Policy(group="finance"), False, 0),
        (gk.Policy(reviewer=nobody), False, 0),
        (gk.Policy(auto_proceed_on_timeout=False), False, 0),
        (gk.Policy(unmeasured="confirm"), False, 0),
        (gk.Policy(floor="notify", unmeasured="confirm"), False, 0),
        (gk.Policy(floor="notify"), True, 0),
        (gk.Policy(floor="silent", unmeasured="silent"), True, 0),
        (gk.Policy(), True, 0),
        (gk.Policy(floor="confirm", timeout=300, auto_proceed_on_timeout=True), True, 300),
    ],
)
def test_an_action_runs_without_an_answer_only_where_every_policy_allows_it(other, proceeds, timeout):
    """A floor that asks nobody leaves it to the other policy. Where all allow it, the longer time is left for an answer."""
    for combined in (AUTO.combined(other), other.combined(AUTO)):
        assert (proceeds, timeout) == (combined.auto_proceed_on_timeout, combined.timeout)


def test_unmeasured_confirm_of_the_runtime_asks_a_person():
    """A gate that proceeds on a timeout does not run then, where the operator requires a confirmation for calls without evidence."""
    grace, ran = make_grace(policies={"wire": gk.Policy(unmeasured="confirm")}, reviewer=nobody), []
    wire = grace.gate(name="wire", policy=gk.Policy(timeout=0, auto_proceed_on_timeout=True))(lambda: ran.append(1))
    with pytest.raises(gk.ActionCancelled):
        wire()
    assert [] == ran


POLICIES_OF_A_PLACE = st.builds(
    gk.Policy,
    floor=st.sampled_from(FLOORS),
    timeout=st.sampled_from([None, 0, 5]),
    auto_proceed_on_timeout=st.sampled_from([None, True, False]),
    thresholds=st.none()
    | st.lists(st.sampled_from([0.0, 0.3, 0.7, math.inf]), min_size=3, max_size=3).map(
        lambda values: gk.Thresholds(*sorted(values, reverse=True))
    ),
    quorum=st.sampled_from([None, 1, 2]),
    group=st.sampled_from([None, ["a", "b"], ["b", "c"]]),
    unmeasured=st.sampled_from([None, "silent", "confirm"]),
)


@examples(200)
@given(POLICIES_OF_A_PLACE, POLICIES_OF_A_PLACE, POLICIES_OF_A_PLACE, st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]))
def test_no_place_makes_an_action_milder(first, second, third, score):
    """Whatever the policies state: level, quorum, groups and running without an answer. Their order matters for the timeout at most."""
    both = first.combined(second)
    together = both.combined(third)
    for each in (first, second, both, third):
        assert FLOORS.index(together.floor) >= FLOORS.index(each.floor)
        assert (together.quorum or 0) >= (each.quorum or 0)
        assert not each.groups or {*together.groups} <= {*each.groups}
        assert together.auto_proceed_on_timeout is not True or each.auto_proceed_on_timeout is not False
        if each.thresholds is not None:
            assert level_at(score, together.thresholds) >= level_at(score, each.thresholds)
    others = third.combined(second.combined(first)), first.combined(second.combined(third))
    if not together.auto_proceed_on_timeout:
        assert {each.timeout for each in (together, *others)} <= {each.timeout for each in (first, second, third)}
        together, *others = (replace(each, timeout=None) for each in (together, *others))
    assert all(together == each for each in others)


def level_at(score, thresholds):
    return sum(score < getattr(thresholds, level) for level in ("silent", "notify", "confirm"))


REFUSED = {
    "": "it is empty", "  ": "it is empty", "wire_money ": "blank at its start or end", "\twire": "blank", "wire\n": "blank",
    "wi\x00re": "cannot be seen", "wi\u200bre": "cannot be seen", "wire\u202e": "cannot be seen", "{wire,pay}_*": "no braces",
    "{wire}_*": "no braces", "wire_.*": "regular expression", ".*": "regular expression", "^wire": "regular expression",
    "wire$": "regular expression", "wire|pay": "regular expression", r"wire\w": "regular expression", "wire_[a-z]+": "regular expression",
    "(?i)wire": "regular expression", "wire.+": "regular expression", "wire,pay": "lists several names", "wire;pay": "lists several names",
    "wire[": "brackets do not match", "wire]": "brackets do not match", "wire[]": "brackets do not match", "[z-a]": "brackets do not match",
    "a[b]c[d": "brackets do not match", "!wire": "cannot be negated", "'wire'": "quotes around it",
    "wire_money, pay": "lists several names", "wire，pay": "lists several names", "a, b": "lists several names", "wire;pay*": "lists several names",
    "/wire/": "regular expression", "/wire/i": "regular expression", "wire_%": r"a glob is written with", "wire_＊": "a glob is written with",
    "~wire": "cannot be negated", "not wire": "cannot be negated", "NOT wire": "cannot be negated", "<wire>": "an expression", "wire>": "an expression",
    "wire=deny": "an expression", "wire == pay": "an expression", "wire()": "an expression", "“wire”": "quotes around it", '"wire': "quotes around it",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_match_nothing_is_refused_where_it_is_written(name):
    """The message names it and what is wrong with it, in a runtime and in a file or variable."""
    with pytest.raises(ValueError, match=f"it can match no action: .*{REFUSED[name]}"):
        check_name(name)
    with pytest.raises(ValueError, match="policy "):
        make_grace(policies={name: "deny"})


@pytest.mark.parametrize("name", ["wire_money", "*", "pay_?", "[ab]c*", "[!a]*", "Bank.transfer", "bank.*", "tools/pay", "Refund (VIP)", "refund[vip]",
    "refund[[]vip]", "<lambda>", "überweisen", "支払い", "charge {amount}", "send mail", "server/tool",
    "server:tool", "read-file", "outer.<locals>.<lambda>", "not_found", "notice board", "/tools/pay", "don't stop", "[a,b]*", "R&D", "A/B test", "v2.1", "wire!", "f(x)", "[!_]*"])  # fmt: skip
def test_other_names_are_taken(name):
    check_name(name)
    PolicySet({name: "deny"})


@pytest.mark.parametrize("name", ["'wire_money'", "/wire/", "~wire", "wire;pay", "wire_%"])
def test_names_are_checked_where_settings_are_read(tmp_path, name):
    """In a variable, in a file and in code, with the source in the message."""
    for environ, source in (
        ({"GRACE_KP_POLICIES": f"{name}=deny"}, "environment variable GRACE_KP_POLICIES"),
        ({"GRACE_KP_CONFIG": str(tmp_path / "x.toml")}, str(tmp_path / "x.toml")),
    ):
        (tmp_path / "x.toml").write_text(f'[policies]\n"{name}" = "deny"\n')
        with pytest.raises(gk.SettingsError) as raised:
            Settings.load(environ=environ, folder=tmp_path)
        assert str(raised.value).startswith(f"policies ({source}): ")
        assert str(raised.value).endswith("Rename an action that is really called so")


def test_an_exact_name_comes_before_its_reading_as_a_glob():
    """`refund[vip]` is the action of that name, and also a set of letters; an exact entry is stricter or milder than a glob, as stated."""
    policies = PolicySet({"refund[vip]": "deny", "refund*": "confirm", "refundi": "notify"})
    assert ["deny", "deny", "notify", "confirm"] == [
        policies.entry_for(name).floor for name in ("refund[vip]", "refundv", "refundi", "refunds")
    ]
    grace = make_grace(policies={"refund[vip]": "deny"})
    with pytest.raises(gk.ActionDenied):
        grace.gate(name="refund[vip]")(lambda: 1)()


@pytest.mark.parametrize(("stated", "name"), [
    ("pay", "рау"), ("pay", "PAY"), ("pay", "ｐａｙ"), ("pay", "pa\u200by"), ("pay", "páy"), ("send_mail", "send_maiI"), ("send_mail", "send_mai1"),
    ("wire_money", "wire＿money"), ("pay_*", "pаy_all"), ("transfer", "ΤRΑNSFER"), ("payment", "payrnent"), ("files", "ﬁles"), ("SEND_MAIL", "send_maiI"),
    ("wire-money", "wire‐money"), ("straße", "STRASSE"), ("сору", "copy"), ("ix", "İx"), ("GET_*", "get_all"),
    *(("wire_money", name) for name in (
        "wir℮_money", "wire_m੦ney", "wire_m௦ney", "wire_m०ney", "wire_m๐ney", "wire_ꮇoney", "wire_Ꮇoney", "wire_mσney", "ꮃire_money", "wire_moꞑey",
        "wire_m〇ney", "wire‿money", "wireˍmoney", "ⱳire_money", "wire_monɇy", "ᴡɪʀᴇ_ᴍᴏɴᴇʏ", "🆆🅸🆁🅴_money", "ꓪire_money", "wire_mⲟney", "wire_mоnеу", "wire_møney",
        "wire\ufe0f_money", "wire_\u3164money", "wire_mo\u034fney", "wi\U000e0100re_money", "wire\u2800_money", "wire_money\u20dd", "wire_money\x00", "wire_money ", "\u00a0wire_money",
    )), ("truncate", "trunϲate"), ("buy", "Ьuy"), ("kill", "kiǀǀ"), ("fix", "fi×"), ("a3", "aЗ"), ("step_v5", "step_v५"), ("pay-all", "pay−all"), ("a/b", "a∕b"),
])  # fmt: skip
def test_what_looks_like_an_action(stated, name):
    """After compatibility forms, case, accents and letters that look alike; such a name matches no policy by itself."""
    assert looks_like(stated, name)
    assert not matches(stated, name)
    assert not any(
        looks_like(*pair) for pair in (("pay", "pay"), ("pay", "play"), ("step_v1", "step_v2"), ("pay_*", "pay_all"))
    )


@pytest.mark.parametrize(("stated", "name", "expected"), [
    ("send_mial", "send_mail", True), ("Send_Mail", "send_mail", True), ("send-mail", "send_mail", True), ("sendmail*", "send_mail", True),
    ("sendMail", "send_mail", True), ("send_mial*", "send_mail", True), ("wire_mony", "wire_money", True), ("wire.*", "wire_money", True),
    ("wire_moneys", "wire_money", True), ("wrie_mnoey", "wire_money", True), ("wire_cash", "wire_money", False), ("pya", "pay", False),
    ("Pay", "pay", True), ("mail*", "send_mail", False), ("delete_*", "relate_items", False), ("delete_*", "delte_items", True), ("wіre_money", "wire_money", False),
])  # fmt: skip
def test_what_is_misspelt(stated, name, expected):
    """Case and separators at any length, up to two letters from five on, one in a short glob; not letters of another alphabet."""
    assert expected is is_misspelt(stated, name)


@pytest.mark.parametrize(
    ("stated", "name", "is_near"),
    [("abc", "axy", True), ("abc", "xyz", False), ("abcdef", "abcxyz", True), ("abcdef", "abwxyz", False)],
)
def test_the_nearest_action_is_near(stated, name, is_near):
    """It differs in up to two letters, or in up to half of a longer name."""
    expected = {stated: name if is_near else None}
    assert expected == PolicySet({stated: "deny"}).unmatched([name, "some_other_action"])


def test_an_action_that_looks_like_a_stated_one_gets_its_policy(caplog):
    """With one warning in the log; unless the action has an entry by its exact name."""
    ran = []
    grace = make_grace(
        policies={"pay": "deny", "Read": "deny", "read": "notify", "wipe_*": "deny"}, on_notify=lambda request: None
    )
    for name in ("pay", "рay", "PAY", "ｐay", "wipе_all", "read"):
        act = grace.gate(name=name, unmeasured="silent")(lambda name=name: ran.append(name))
        for _ in range(2):
            with contextlib.suppress(gk.ActionDenied):
                act()
    assert ["read", "read"] == ran
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert 4 == len(warned)
    assert "the action 'рay' looks like 'pay' and gets the same policy" == warned[0]


@pytest.mark.parametrize(("stated", "planted", "action"), [
    ({"wire_*": "deny"}, {"wire_*": "silent"}, "Wire_Money"), ({"wire-money": "deny"}, {"wire_money": "silent"}, "wire_money"),
    ({"wire-money": "deny"}, {"wire-money": "silent", "wire_money": "silent"}, "wire_money"), ({"wire": "deny"}, {"wirе": "silent"}, "wirе"),
    ({"*": "deny"}, {"Pay": "silent"}, "pay"),
])  # fmt: skip
def test_another_place_takes_the_policy_of_a_look_alike_from_no_action(tmp_path, monkeypatch, stated, planted, action):
    """Such as a file in the working directory, which states the same glob, or the action's exact name."""
    lines = [f'"{name}" = "{floor}"\n' for name, floor in planted.items()]
    (tmp_path / "grace_kp.toml").write_text("".join(["[policies]\n", *lines]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, policies=stated, unmeasured="silent")
    with pytest.raises(gk.ActionDenied):
        grace.gate(name=action)(lambda: 1)()


def test_policies_that_match_nothing_are_listed(caplog):
    """With the nearest action, in the runtime's status; one that differs in separators alone holds, one in letters leads to a warning."""
    ran = []
    policies = {"wire_mony": "deny", "Drop-Table": "deny", "zzz": "deny", "send_mail": "confirm"}
    grace = make_grace(policies=policies, on_notify=lambda request: None)

    names = ("wire_money", "drop_table", "send_email", "send_mail")
    gate = functools.partial(grace.gate, floor="notify", unmeasured="notify")
    actions = {name: gate(name=name)(lambda name=name: ran.append(name)) for name in names}
    for _ in range(2):
        actions["wire_money"]()
        actions["send_email"]()
        with pytest.raises(gk.ActionDenied):
            actions["drop_table"]()
    assert ["wire_money", "send_email"] * 2 == ran
    assert {"wire_mony": "wire_money", "Drop-Table": "drop_table", "zzz": None} == grace.status()["unmatched_policies"]
    assert [
        "the policy 'wire_mony' matches no action so far; did you mean 'wire_money'?",
        "the policy 'Drop-Table' matches no action so far; did you mean 'drop_table'?",
    ] == [record.getMessage() for record in caplog.records]


def test_the_names_of_a_flood_are_not_kept():
    """A model may call tools by any name, and the policies stay right and bounded."""
    policies = PolicySet({"pay": "deny"})
    for number in range(3_000):
        assert policies.stated_for(f"tool{number}") is None
    assert "deny" == policies.stated_for("pay").floor == policies.stated_for("PAY").floor
    assert 3_000 > len(policies._stated)
