"""What templates of the inbox show, and the fields of the form that edits a request: what comes back as it was rendered changes nothing."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import enum
import html
import inspect
import pathlib
import re
import uuid
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_kp.approvals import decode
from grace_kp.pages import visible
from grace_kp.web.inbox._field import changed_value, fields_of, with_submitted
from grace_kp.web.inbox._words import (
    call_parts,
    flat_text,
    kind_of,
    member_of,
    moment,
    opaque_parts,
    query,
    read_codes,
    request_path,
    run_path,
    value_html,
    write_codes,
)
from tests.approvals.values import values
from tests.web.inbox.conftest import HOSTILE, Shop, anything, refund


def test_a_time_stands_with_its_distance():
    assert "in 3 h 20 m" in moment(13_000.0, 1_000.0)
    assert 'data-distance="13000.000"' in moment(13_000.0, 1_000.0)
    assert "10 s ago" in moment(990.0, 1_000.0)
    assert "no deadline" in moment(None, 0.0)


def test_addresses_are_quoted():
    assert ["/runs/kp:trace:1", "/runs/..%2Fx"] == [run_path("kp:trace:1"), run_path("../x")]
    assert "/approvals/..%2Fx%3Fy%23%22" == request_path('../x?y#"')
    assert "?action=a%26b&offset=50" == query({"action": "a&b", "level": ""}, offset=50)
    assert "" == query({"action": ""}, offset=0)


TEXTS = st.one_of(
    st.text(), st.text(st.characters(codec=None)), st.text("⟨⟩U+0123ABCDEF\u202e\u200b\r\n\t \u00a0\ufe0f☎字")
)


def plain(markup):
    """What the HTML says, with marks as `{U+202E × 2}`."""
    text = re.sub(r'<mark class="code-point" title="[^"]*">(.*?)</mark>', r"{\1}", str(markup))
    return html.unescape(re.sub(r"<[^>]*>", "", text))


@given(TEXTS)
def test_a_text_survives_a_field(text):
    """The code of a character reads back as the character, also where the text itself looks like a code."""
    assert text == read_codes(write_codes(text))
    assert text == read_codes(write_codes(text, keep=""))
    assert write_codes(text) == visible(write_codes(text), lines=True)


@given(TEXTS.filter(lambda text: text and "{" not in text))
def test_nothing_of_a_text_is_lost(text):
    block = re.search(r'<pre class="value"[^>]*>(.*?)</pre>', str(value_html(text)), re.DOTALL)[1]
    read = re.sub(
        r"\{U\+([0-9A-F]+)(?: × ([\d,]+))?\}",
        lambda found: chr(int(found[1], 16)) * int((found[2] or "1").replace(",", "")),
        plain(block),
    )
    assert text == read


def test_what_cannot_be_seen_is_marked():
    """Bidirectional controls, carriage returns, tabs, special blanks, and blanks at the end of a line."""
    assert "a{U+202E}b{U+200B × 3}{U+000D}" == plain(value_html("a\u202eb\u200b\u200b\u200b\r"))
    assert "a{U+0009}b{U+00A0}c{U+0020 × 2}\nd{U+000A}" == plain(value_html("a\tb\u00a0c  \nd\n"))
    assert "an empty string" == plain(value_html(""))
    assert len(value_html("\u200b" * 300_000)) < 1_000  # one mark counts a run
    assert r'"\u05e9\u05dc\u05d5\u05dd 1"' in plain(value_html("שלום 1"))  # a browser may show another order


def test_markup_stays_text():
    for value in (HOSTILE, [HOSTILE], {HOSTILE: {HOSTILE: HOSTILE}}):
        assert "<script" not in value_html(value)
        assert "\u202e" not in value_html(value)


def test_a_long_value_is_complete():
    text = "word " * 2_000 + "end"
    assert "<details open" in value_html(text)
    assert text in plain(value_html(text))
    assert "<details open" in value_html(["x" * 50] * 40)
    assert 40 == value_html(["x" * 50] * 40).count("x" * 50)


def test_text_and_number_are_told_apart():
    values = ["40", 40, 40.0, True, None, decimal.Decimal(4), dt.date(2026, 1, 2), b"x", [1], {"a": 1}, (1,)]
    kinds = "text|integer|number|true or false|no value|decimal number|date|bytes|list|object|tuple"
    assert kinds.split("|") == [kind_of(value) for value in values]
    assert "[1.0, true, null]" == plain(value_html([1.0, True, None]))


def test_the_sentence_begins_with_the_key():
    approval = Shop().ask({"euros": 40, "invoice": "A\u202e" + "x" * 100}, key="k", key_fields=("invoice",))
    parts = call_parts(approval)
    assert ["invoice", "euros"] == [name for name, _ in parts]
    assert parts[0][1].startswith('"A\\u202exx')
    assert parts[0][1].endswith("…")
    assert "40" == flat_text(40)


class Coin(enum.Enum):
    EUR = "eur"


def test_a_member_of_an_enum_is_named():
    shop = Shop()
    assert member_of(shop.ask({"value": Coin.EUR}, anything), "value").endswith('Coin.EUR = "eur"')
    imitation = {"$model": "x", "name": "EUR", "value": "eur"}
    assert "" == member_of(shop.ask({"value": imitation}, anything), "value")
    assert "" == member_of(shop.ask(None, refund), "euros")


def test_what_cannot_be_shown_says_so():
    assert [] == opaque_parts({"a": [1, "x"]})
    assert opaque_parts([0] * 100_001)


SHOP = Shop()
NOON, KEY = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC), uuid.UUID(int=1)


class Currency(enum.Enum):
    EUR = "eur"
    USD = "usd"


def typed(
    text: str = "", whole: int = 0, number: float = 0.5, yes: bool = True, day: dt.date = dt.date(2026, 1, 2),
    at: dt.datetime = NOON, span: dt.timedelta = dt.timedelta(1), money: decimal.Decimal = decimal.Decimal("1.10"),
    key: uuid.UUID = KEY, place: pathlib.Path = pathlib.Path("/a"), currency: Currency = Currency.EUR,
    choice: Literal["a", "b"] = "a", maybe: str | None = None, due: dt.date | None = None, count: int | None = None, tags: list[str] = [],  # noqa: B006
    pair: tuple[int, str] = (1, "a"), either: int | str = 1,
): ...  # fmt: skip


def field_of(value, action=anything, name="value"):
    approval = SHOP.ask({name: value}, action)
    return approval, fields_of(approval)[0]


def change(approval, field, text, *, is_null=False):
    """What a person's text makes of an argument, decoded."""
    return decode({field.name: changed_value(approval, field, text, is_null=is_null)})[field.name]


def sent(text):
    return text.replace("\n", "\r\n")


@given(values())
@settings(max_examples=150, deadline=None)
def test_an_unchanged_field_changes_nothing(value):
    """Whatever the value, and whatever its text would read as."""
    approval, field = field_of(value)
    assert approval.encoded["value"] is changed_value(approval, field, sent(field.text), is_null=field.is_null)
    assert approval.encoded["value"] is changed_value(approval, field, None, is_null=False)


JSON = st.recursive(
    st.sampled_from([None, True, 0, -1, 5, 1.5, "", "x", "null", "string", "integer", "$date", "$enum", "path", "#/$defs/x", "("]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["type", "x", "null", "$model"]), inner, max_size=3)),
    max_leaves=4,
)  # fmt: skip
KEYWORDS = (
    "type", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "properties", "items", "prefixItems", "additionalProperties",
    "required", "minimum", "multipleOf", "maxLength", "pattern", "format", "x-encoding", "x-members", "x-class", "$id", "$anchor", "$schema",
)  # fmt: skip
SCHEMAS = st.recursive(
    JSON, lambda inner: st.dictionaries(st.sampled_from(KEYWORDS), st.one_of(inner, st.lists(inner, max_size=3)), max_size=4), max_leaves=8
)  # fmt: skip
"""Schemas as a server of tools may send them: keywords with anything in them."""


VALUES = ["x", 5, 1.5, None, True, ["a"], {"x": 1}, NOON]
ASKED = {repr(value): SHOP.ask({"value": value}, anything) for value in (*VALUES, "a")}


def with_schema(schema, value, definitions):
    parts = {"properties": {"value": schema}, "$defs": {"x": definitions}}
    return replace(ASKED[repr(value)], schema=parts)


@given(SCHEMAS, st.sampled_from(VALUES), SCHEMAS)
@settings(max_examples=300, deadline=None)
def test_a_malformed_schema_breaks_no_form(schema, value, definitions):
    approval = with_schema(schema, value, definitions)
    (field,) = fields_of(approval)
    assert approval.encoded["value"] is changed_value(approval, field, sent(field.text), is_null=field.is_null)
    for text in ("y", "7", "2.5", "", '["b"]', "2026-01-02T12:00:00+00:00"):
        with contextlib.suppress(ValueError):
            changed_value(approval, field, text, is_null=False)


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (["integer", "null"], "number"),
        (["null", "string"], "text"),
        (["boolean"], "choice"),
        (["integer", "string"], "json"),
    ],
)
def test_a_schema_may_list_types(kinds, kind):
    value = {"number": 5, "text": "a", "choice": True, "json": 5}[kind]
    approval = with_schema({"type": kinds}, value, {})
    (field,) = fields_of(approval)
    assert (kind, "null" in kinds and kind != "choice") == (field.kind, field.is_nullable)


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
@settings(max_examples=100, deadline=None)
def test_a_text_takes_any_characters(before, after):
    approval, field = field_of(before)
    assert after == change(approval, field, sent(write_codes(after)))


KINDS = {
    "text": "text", "whole": "number", "number": "number", "yes": "choice", "day": "line", "at": "line", "span": "line", "money": "line",
    "key": "line", "place": "line", "currency": "choice", "choice": "choice", "maybe": "text", "due": "line", "count": "number",
    "tags": "json", "pair": "json", "either": "json",
}  # fmt: skip
DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(typed).parameters.items()}


def test_each_type_has_its_field():
    approval = SHOP.ask(DEFAULTS, typed)
    assert KINDS == {field.name: field.kind for field in fields_of(approval)}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", "a\r\nb", "a\nb"), ("whole", " -7 ", -7), ("whole", "123456789012345678901234567890", 123456789012345678901234567890),
        ("number", "1e3", 1000.0), ("yes", "1", False), ("day", "2027-12-31", dt.date(2027, 12, 31)),
        ("at", "2026-05-06T07:08:09+02:00", dt.datetime(2026, 5, 6, 7, 8, 9, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        ("span", "P2DT5S", dt.timedelta(days=2, seconds=5)), ("money", "99.90", decimal.Decimal("99.90")), ("key", str(uuid.UUID(int=9)), uuid.UUID(int=9)),
        ("place", "/b/c", pathlib.Path("/b/c")), ("choice", "1", "b"), ("maybe", "", ""), ("maybe", "x", "x"), ("due", "2026-02-03", dt.date(2026, 2, 3)),
        ("count", "3", 3), ("tags", '["a", "\\u202e"]', ["a", "\u202e"]), ("pair", '[2, "b"]', (2, "b")), ("either", '"1"', "1"),
    ],
)  # fmt: skip
def test_each_type_takes_what_a_person_writes(name, text, value):
    approval = SHOP.ask(DEFAULTS, typed)
    field = next(field for field in fields_of(approval) if field.name == name)
    found = change(approval, field, text)
    assert (type(value), value) == (type(found), found)


def test_a_member_of_an_enum_is_chosen_by_number():
    approval = SHOP.ask({"currency": Currency.EUR}, typed)
    (field,) = fields_of(approval)
    assert ["eur", "usd"] == field.labels
    assert "usd" == changed_value(approval, field, "1", is_null=False)["value"]


def test_null_is_a_value_of_its_own():
    approval = SHOP.ask({"maybe": "x", "due": dt.date(2026, 1, 2), "count": 4}, typed)
    maybe, due, count = fields_of(approval)
    assert change(approval, maybe, "x", is_null=True) is None
    assert change(approval, due, "") is None
    assert change(approval, count, " ") is None
    absent = SHOP.ask({"maybe": None}, typed)
    (field,) = fields_of(absent)
    assert field.is_null
    assert change(absent, field, "", is_null=True) is None
    assert "" == change(absent, field, "", is_null=False)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("whole", "seven", "not a whole number"), ("whole", "1.5", "integer"), ("whole", "9" * 5_000, "can be kept"), ("number", "1e999", "can be kept"),
        ("number", "1_000", "not a number"), ("day", "2026-02-30", "not a date"), ("span", "P1D", "not a duration"), ("money", "1,10", "not a decimal"),
        ("key", "x", "not a UUID"), ("choice", "7", "choose one"), ("yes", "x", "choose one"), ("tags", "[1", "is not JSON"), ("tags", "[1]", "is not of type"),
        ("tags", "NaN", "NaN is not a JSON number"), ("either", '{"a": 1, "a": 2}', "duplicate key"), ("either", "[" * 100_000, "JSON"), ("either", "1e999", "JSON"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_at_the_field(name, text, words):
    approval = SHOP.ask(DEFAULTS, typed)
    field = next(field for field in fields_of(approval) if field.name == name)
    with pytest.raises(ValueError, match=words):
        changed_value(approval, field, text, is_null=False)


def test_a_time_zone_stays():
    from zoneinfo import ZoneInfo

    approval, field = field_of(dt.datetime(2026, 1, 2, 12, tzinfo=ZoneInfo("Europe/Berlin")))
    found = change(approval, field, "2026-07-02T12:00:00+02:00")
    assert "Europe/Berlin" == str(found.tzinfo)
    with pytest.raises(ValueError, match="Europe/Berlin with its offset"):
        changed_value(approval, field, "2026-07-02T12:00:00+01:00", is_null=False)


def test_what_identifies_the_operation_is_fixed():
    approval = SHOP.ask(
        {"invoice": "A", "euros": 1, "memo": "x"}, key="k", key_fields=("invoice",), not_covered=("memo",)
    )
    fields = {field.name: field for field in fields_of(approval)}
    assert ["fixed", "number", "fixed"] == [fields[name].kind for name in ("invoice", "euros", "memo")]
    assert "identifies the operation" in fields["invoice"].hint
    assert "not covered" in fields["memo"].hint
    assert approval.encoded["invoice"] is changed_value(approval, fields["invoice"], "B", is_null=False)
    from tests.approvals.values import Order

    _, field = field_of([Order("a", 1)])
    assert ("fixed", True) == (field.kind, "object of a class" in field.hint)


def test_a_refused_text_stays_in_its_field():
    """So that it can be corrected; hidden characters in it are shown."""
    _, field = field_of("a")
    again = with_submitted(field, "b\u202e⟨U+200B⟩\r\nc", is_null=False, problem="no")
    assert ("b⟨U+202E⟩⟨U+200B⟩\nc", "no") == (again.text, again.problem)
    _, nested = field_of([1])
    assert '["\\u202e"\n' == with_submitted(nested, '["\u202e"\n', is_null=False, problem="no").text
