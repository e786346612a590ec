"""Names of policies: what can match nothing is refused, what looks like an action is found, and what is misspelt is told from another name."""

from __future__ import annotations

import contextlib
import functools
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.gating import PolicySet
from grace_kp.gating._policy import distance, is_misspelt, looks_like, matches
from grace_kp.settings import Settings, check_name
from grace_kp.testing import make_grace

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


def test_a_name_is_a_string():
    """The type is named, such as that of a tool in place of its name."""
    with pytest.raises(ValueError, match="must be a string, not tuple"):
        PolicySet({("wire",): "deny"})


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


@pytest.mark.parametrize(("stated", "name"), [("pay", "pay"), ("pay", "play"), ("translate_it", "translate_lt"), ("step_v1", "step_v2"), ("pay_*", "pay_all"), ("send_mail", "sendmail")])  # fmt: skip
def test_what_does_not(stated, name):
    assert not looks_like(stated, name)


@pytest.mark.parametrize(("stated", "name", "expected"), [
    ("send_mial", "send_mail", True), ("Send_Mail", "send_mail", True), ("send-mail", "send_mail", True), ("sendmail*", "send_mail", True),
    ("sendMail", "send_mail", True), ("send_mial*", "send_mail", True), ("wire_mony", "wire_money", True), ("wire.*", "wire_money", True),
    ("wire_moneys", "wire_money", True), ("wrie_mnoey", "wire_money", True), ("wire_cash", "wire_money", False), ("pya", "pay", False),
    ("Pay", "pay", True), ("mail*", "send_mail", False), ("delete_*", "relate_items", False), ("delete_*", "delte_items", True), ("wіre_money", "wire_money", False),
])  # fmt: skip
def test_what_is_misspelt(stated, name, expected):
    """Case and separators at any length, up to two letters from five on, one in a short glob; not letters of another alphabet."""
    assert expected is is_misspelt(stated, name)


NAMES = st.text("abcd_", min_size=1, max_size=7)


@given(NAMES, NAMES)
def test_the_distance_of_names(first, second):
    """Symmetric, 0 for the same name alone, and at most the length of the longer; a glob that matches has none."""
    assert distance(first, second) == distance(second, first) <= max(len(first), len(second))
    assert (first == second) is (distance(first, second) == 0)
    assert 0 == distance(f"{first}*", first + second) == distance(f"*{first[1:]}", second + first[1:])
    assert 1 >= distance(first, first[1:2] + first[:1] + first[2:])


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


def test_a_look_alike_never_makes_an_action_milder():
    grace = make_grace(policies={"*": "deny", "Pay": "silent"})
    with pytest.raises(gk.ActionDenied):
        grace.gate(name="pay")(lambda: 1)()


@pytest.mark.parametrize(("stated", "planted", "action"), [
    ({"wire_*": "deny"}, {"wire_*": "silent"}, "Wire_Money"), ({"wire-money": "deny"}, {"wire_money": "silent"}, "wire_money"),
    ({"wire-money": "deny"}, {"wire-money": "silent", "wire_money": "silent"}, "wire_money"), ({"wire": "deny"}, {"wirе": "silent"}, "wirе"),
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
