"""Recorded generators and async generators answer every driver as they do without recording."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", embedder=None, reviewer=None) as made:
        yield made


# A small language of generator bodies and of drivers, run with and without the decorator.
BODIES = st.lists(st.sampled_from(["yield", "catch", "raise", "return", "ignore_exit"]), max_size=6)


DRIVES = st.lists(st.sampled_from(["next", "send", "throw", "exit", "close"]), max_size=8)


def body_of(program):
    def body():
        got = None
        for word in program:
            if word == "yield":
                got = yield ("y", got)
            elif word == "catch":
                try:
                    got = yield ("c", got)
                except KeyError as error:
                    got = yield ("k", str(error))
            elif word == "ignore_exit":
                try:
                    got = yield ("i", got)
                except GeneratorExit:
                    got = yield ("ignored", None)
            elif word == "raise":
                raise LookupError("mine")
            else:
                return ("r", got)
        return ("end", got)

    return body


def outcome_of(step):
    try:
        return ("value", step())
    except BaseException as error:
        return (
            type(error).__name__,
            getattr(error, "value", None),
            [str(a) for a in error.args if not isinstance(a, tuple)],
        )


def drive(generator, drives):
    out = []
    for number, word in enumerate(drives):
        out.append(
            outcome_of(
                {
                    "next": lambda: next(generator),
                    "send": lambda number=number: generator.send(number),
                    "throw": lambda number=number: generator.throw(KeyError(str(number))),
                    "exit": lambda: generator.throw(GeneratorExit()),
                    "close": generator.close,
                }[word]
            )
        )
    with contextlib.suppress(BaseException):
        generator.close()
    return out


@given(BODIES, DRIVES)
def test_generators_answer_every_driver_as_without_the_decorator(program, drives):
    """Differential: any body under any sequence of next, send, throw and close."""
    grace = gk.Grace(store="memory:")
    plain = body_of(program)
    recorded = grace.agent(plain)
    assert drive(recorded(), drives) == drive(plain(), drives)
    assert not grace.recorder.open_runs


def async_body_of(program):
    async def body():
        got = None
        for word in program:
            await asyncio.sleep(0)
            if word == "yield":
                got = yield ("y", got)
            elif word == "catch":
                try:
                    got = yield ("c", got)
                except KeyError as error:
                    got = yield ("k", str(error))
            elif word == "ignore_exit":
                try:
                    got = yield ("i", got)
                except GeneratorExit:
                    got = yield ("ignored", None)
            elif word == "raise":
                raise LookupError("mine")
            else:
                return

    return body


async def adrive(generator, drives):
    out = []
    for number, word in enumerate(drives):
        try:
            if word == "next":
                out.append(await anext(generator))
            elif word == "send":
                out.append(await generator.asend(number))
            elif word == "throw":
                out.append(await generator.athrow(KeyError(str(number))))
            elif word == "exit":
                out.append(await generator.athrow(GeneratorExit()))
            else:
                out.append(await generator.aclose())
        except BaseException as error:
            out.append((type(error).__name__, [str(a) for a in error.args]))
    with contextlib.suppress(BaseException):
        await generator.aclose()
    return out


@given(BODIES, DRIVES)
def test_async_generators_answer_every_driver_as_without_the_decorator(program, drives):
    """The same for asend, athrow and aclose."""
    grace = gk.Grace(store="memory:")
    plain = async_body_of(program)
    recorded = grace.agent(plain)
    assert asyncio.run(adrive(recorded(), drives)) == asyncio.run(adrive(plain(), drives))
    assert not grace.recorder.open_runs
