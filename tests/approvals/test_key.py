"""Keys of actions: from the program's template, and without collisions."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import inspect
import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.approvals import KeyTemplate


def refund(invoice: str, euros: int = 1, *rest: str, note: object = None, **more: str) -> None: ...


SIGNATURE = inspect.signature(refund)


def template(text, **options):
    return KeyTemplate(text, SIGNATURE, **options)


def key(text, **arguments):
    return template(text).key("shop", "refund", arguments)


def test_a_key_is_made_of_the_domain_the_action_and_the_named_fields():
    """Other arguments do not count."""
    expected = {"domain": "shop", "action": "refund", "template": "refund:{invoice}", "fields": {"invoice": "7"}}
    assert expected == json.loads(key("refund:{invoice}", invoice="7", euros=20))
    assert key("refund:{invoice}", invoice="7", euros=20) == key("refund:{invoice}", invoice="7", euros=30)
    assert ("invoice", "euros") == template("{invoice}/{euros} {{x}} {invoice}").fields
    assert () == template("nightly").fields


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_values_do_not_run_into_each_other(a, b, c, d):
    """`a:b` and `c` are not `a` and `b:c`, whatever the texts."""
    texts = (a, b, c, d)
    if any(not text.strip() or "\ud800" <= max(text) <= "\udfff" for text in texts):
        return
    found = []
    for first, second in ((a, b), (c, d)):
        try:
            found.append(key("{invoice}:{note}", invoice=first, note=second))
        except ValueError:
            return  # looks like a secret
    assert ((a, b) == (c, d)) == (found[0] == found[1])


def test_types_domains_and_actions_are_told_apart():
    """The number 7 is not the text 7."""
    found = {
        key("{invoice}", invoice=value) for value in ("7", 7, 7.0, True, decimal.Decimal(7), decimal.Decimal("7.0"))
    }
    found |= {
        template("{invoice}").key(domain, action, {"invoice": "7"}) for domain, action in (("a", "bc"), ("ab", "c"))
    }
    assert 8 == len(found)


class Shop(enum.StrEnum):
    BERLIN = "b"


@pytest.mark.parametrize(
    "value",
    [
        uuid.UUID(int=1),
        dt.date(2026, 1, 1),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.time(1),
        Shop.BERLIN,
        2**70,
        0,
        0.5,
    ],
)
def test_scalars_can_be_fields(value):
    """Texts, numbers, dates, UUIDs and members of enums."""
    assert key("{invoice}", invoice=value)


class Hard(enum.Enum):
    LIST = (1,)
    NOTHING = None


REFUSED = {
    "nothing": (None, "is None; a key needs a value that identifies the operation"),
    "a list": (["7"], "is a list; a key takes texts, numbers, dates, UUIDs and members of enums"),
    "a dict": ({"a": 1}, "is a dict; a key takes"),
    "bytes": (b"7", "is a bytes; a key takes"),
    "an object": (object(), "is a object; a key takes"),
    "NaN": (float("nan"), "is nan; a key takes finite numbers"),
    "infinity": (decimal.Decimal("-Infinity"), "is -Infinity; a key takes finite numbers"),
    "an empty text": (" ", "is an empty text; a key needs a value"),
    "a long text": ("a" * 1_001, "has more than 1,000 characters"),
    "an enum of tuples": (Hard.LIST, "is a Hard; a key takes"),
    "an enum of nothing": (Hard.NOTHING, "is None"),
    "a secret": ("sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ2" * 2, "holds a secret; a key is kept in the clear"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_identifies_nothing_is_refused(name):
    """The message names the field and the key."""
    value, message = REFUSED[name]
    with pytest.raises(ValueError, match=r"the field 'invoice' of the key 'r:\{invoice\}' ") as caught:
        key("r:{invoice}", invoice=value)
    assert message in str(caught.value)
    assert "aB3dE5" not in str(caught.value)


def test_a_missing_argument_is_none():
    """As when an action has no default and a framework passes nothing."""
    with pytest.raises(ValueError, match=r"the field 'invoice' of the key '\{invoice\}' is None"):
        key("{invoice}")


BAD = {
    "an unknown field": (
        "r:{invoise}",
        "names 'invoise', which is no single parameter of the action; it has invoice, euros, note",
    ),
    "all positional arguments": ("{rest}", "names 'rest', which is no single parameter"),
    "all keywords": ("{more}", "names 'more', which is no single parameter"),
    "a format": ("{euros:>10}", "may hold only names of parameters in braces"),
    "a conversion": ("{euros!r}", "may hold only names of parameters in braces"),
    "an attribute": ("{note.id}", "may hold only names of parameters in braces"),
    "an index": ("{note[0]}", "may hold only names of parameters in braces"),
    "a number": ("{0}", "may hold only names of parameters in braces"),
    "no name": ("{}", "may hold only names of parameters in braces"),
    "an open brace": ("r:{invoice", "cannot be read: "),
    "nothing": ("", 'key must be a text such as "refund:{invoice}"'),
    "no text": (7, 'key must be a text such as "refund:{invoice}"'),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_template_fails_where_it_is_written(name):
    """At decoration, before any call."""
    text, message = BAD[name]
    with pytest.raises(gk.GateError) as caught:
        template(text)
    assert message in str(caught.value)


def test_a_sealed_parameter_is_no_field():
    """A key is kept in the clear."""
    with pytest.raises(gk.GateError, match="names 'invoice', which is sealed"):
        template("{invoice}", sealed=("invoice",))
