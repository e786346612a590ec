"""The arguments of recorded calls by name, and the texts in what a run recorded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.record import TOOL, Call, Listener, Recorder, Spec, open_run
from grace_kp.record._run import ModelCall, Note
from grace_kp.record._steps import named, plain_input, texts_of
from grace_kp.settings import Settings
from grace_kp.trace import Redactor, have_plain_names

NAMES = ["question", "limit", "password", "name", "value", "type", "selector", "apiKey", "text"]
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats()
TEXTS = st.sampled_from(["", "abc", "password", "#password", "AKIAIOSFODNN7EXAMPLE", "hunter2secret", "\ud800"])


def call_of(names, args, kwargs=None):
    """Return a call of a tool with these parameters."""
    spec = Spec(None, kind=TOOL, name="look")
    spec.positional = tuple(names)
    return Call(open_run(Recorder(Settings(), Listener()), spec, (), {}), spec, None, args, kwargs)


@given(st.lists(st.sampled_from(NAMES), unique=True), st.lists(SCALARS | TEXTS, max_size=4).map(tuple))
def test_plain_input_is_what_redaction_leaves_as_it_is(names, args):
    """Arguments that need neither rendering nor redaction are those that both leave alone; all others are left to them."""
    call, redactor = call_of(names, args), Redactor(identifiers=True)
    redactor.expect([value for value in args if isinstance(value, str)])
    plain = plain_input(tuple(names) if have_plain_names(names) else None, args, redactor.harmless)
    if plain is not None:
        assert repr(redactor.value(named(call))) == repr(plain)


def test_texts_and_whole_numbers_are_plain():
    """Arguments of most calls are plain; further arguments, fractions, rendered values and other texts are not."""
    names, harmless = ("question", "limit"), frozenset({"why?"})
    assert {"question": "why?", "limit": 3} == plain_input(names, ("why?", 3), harmless)
    assert {"question": "why?"} == plain_input(names, ("why?",), harmless)
    assert {} == plain_input(names, (), harmless)
    assert [None] * 5 == [
        plain_input(*arguments, harmless)
        for arguments in [
            (names, ("other",)),
            (names, (1.5,)),
            (names, (1, 2, 3)),
            (names, ["why?"]),
            (None, ("why?",)),
        ]
    ]


def test_arguments_beyond_the_parameters_have_a_name():
    """They stand under the name of the parameter that takes them, and numbers that JSON cannot hold become texts."""
    assert {"a": "nan", "args": [2]} == named(call_of(["a"], (float("nan"), 2)))


def test_texts_of_all_events_are_found_once():
    """Texts in arguments, results, thoughts and answers of models, in order; the end of a call repeats none."""
    call = call_of(["a"], [{"b": "in a dict"}], {"c": "keyword"})
    call.close(["out"])
    plain = call_of(["a"], ("in", 3))
    plain.close("back")
    events = [*[call] * 2, *[plain] * 2, Note("thought", 0), ModelCall("model", start=0, end=1, text="answer")]
    expected = ["before", "in a dict", "keyword", "out", "in", "back", "thought", "answer"]
    assert expected == texts_of(events, ["before"])
