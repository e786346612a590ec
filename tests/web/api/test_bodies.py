"""The bodies of requests."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from grace_kp.web.api._bodies import Label, Reject, Respond, Several


def test_the_words_go_to_one_argument():
    """Note, reason and words are the words of the decision; what is left out is left out."""
    assert {"words": "no", "digest": "sha256:00"} == Reject(reason="no", digest="sha256:00").arguments()
    assert {"words": "ask"} == Respond(words="ask").arguments()
    assert {} == Reject().arguments()


@pytest.mark.parametrize("words", ["", " ", "\n\t", "\x1c"])
def test_an_answer_needs_words(words):
    """Blank ones are none."""
    with pytest.raises(ValidationError, match="words"):
        Respond(words=words)


def test_a_label_is_a_truth_or_a_share():
    """Neither a text nor a number beyond 1 is taken for one."""
    assert [True, 0.5, 1] == [Label(correct=value).correct for value in (True, 0.5, 1)]
    for value in ("true", 2, -0.1, None):
        with pytest.raises(ValidationError):
            Label(correct=value)


def test_several_are_bounded():
    """At most 200 at once, and at least one."""
    shown = [{"id": str(number), "digest": "d"} for number in range(201)]
    assert 200 == len(Several(verb="skip", approvals=shown[:200]).approvals)
    for approvals in (shown, []):
        with pytest.raises(ValidationError):
            Several(verb="skip", approvals=approvals)
