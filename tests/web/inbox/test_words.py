"""What templates of the inbox show: arguments with every character, times and states."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import html
import re

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import visible
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


class Currency(enum.Enum):
    EUR = "eur"


def test_a_member_of_an_enum_is_named():
    shop = Shop()
    assert member_of(shop.ask({"value": Currency.EUR}, anything), "value").endswith('Currency.EUR = "eur"')
    imitation = {"$model": "x", "name": "EUR", "value": "eur"}
    assert "" == member_of(shop.ask({"value": imitation}, anything), "value")
    assert "" == member_of(shop.ask(None, refund), "euros")


def test_what_cannot_be_shown_says_so():
    assert [] == opaque_parts({"a": [1, "x"]})
    assert opaque_parts([0] * 100_001)
