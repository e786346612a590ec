"""Bodies of requests: bounded in size and time, and parsed."""

from __future__ import annotations

import asyncio

import pytest
from starlette.exceptions import HTTPException

from grace_kp.web.security._body import FIELDS, again, parse_form, parse_json, read_body


def channel(*chunks, ends=True):
    """A channel that delivers these chunks, and then nothing for ever unless it ends."""
    messages = [
        {"type": "http.request", "body": chunk, "more_body": not ends or place < len(chunks) - 1}
        for place, chunk in enumerate(chunks)
    ]

    async def receive():
        if messages:
            return messages.pop(0)
        return await asyncio.Event().wait()

    return receive


async def test_chunks_become_one_body():
    """Whatever their number."""
    assert b"abc" == await read_body(channel(b"a", b"", b"bc"), 3)


async def test_a_larger_body_is_refused_while_it_is_read():
    """Whatever length was stated: the rest is never read."""
    with pytest.raises(HTTPException) as raised:
        await read_body(channel(b"ab", b"cd", ends=False), 3)
    assert 413 == raised.value.status_code


async def test_a_body_that_does_not_come_is_refused():
    """A client that stops sending holds nothing for longer than the deadline."""
    with pytest.raises(HTTPException) as raised:
        await read_body(channel(b"a", ends=False), 3, seconds=0.01)
    assert 408 == raised.value.status_code


async def test_a_client_that_goes_ends_its_request():
    """What it has sent so far is not used."""

    async def receive():
        return {"type": "http.disconnect"}

    with pytest.raises(HTTPException) as raised:
        await read_body(receive, 3)
    assert 400 == raised.value.status_code


async def test_a_body_can_be_read_again():
    """Once, and then the channel goes on."""
    receive = again(b"abc", channel(b"later"))
    assert [b"abc", b"later"] == [(await receive())["body"], (await receive())["body"]]


def test_forms_are_parsed():
    """Fields of one name are a list, and empty ones count."""
    assert {"a": ["1", "é"], "b": [""]} == parse_form(b"a=1&a=%C3%A9&b=")


@pytest.mark.parametrize("body", [b"\xff", b"a=%FF", b"&".join(b"a=1" for _ in range(FIELDS + 1))])
def test_a_form_that_cannot_be_read_is_refused(body):
    """Not UTF-8, or too many fields."""
    with pytest.raises(HTTPException) as raised:
        parse_form(body)
    assert 400 == raised.value.status_code


def test_json_is_parsed():
    """An empty body is none."""
    assert {"a": [1.5, None]} == parse_json(b'{"a": [1.5, null]}')
    assert parse_json(b"") is None


@pytest.mark.parametrize("body", [b"{", b"\xff", b"NaN", b"[" * 100_000, b"1" * 10_000, b'{"a": 1, "a": 2}'])
def test_what_is_no_json_is_refused(body):
    """Also constants that JSON lacks, nesting and numbers beyond all bounds, and names that stand twice."""
    with pytest.raises(HTTPException) as raised:
        parse_json(body)
    assert 400 == raised.value.status_code
