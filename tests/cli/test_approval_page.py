"""The page of a request states what the console states, and everything else that a decision rests on; in lists it is a few words."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import io
import subprocess
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

import grace_kp as gk
from grace_kp.approvals import (
    ENTITLING,
    Actor,
    Approval,
    ApprovalState,
    Claimed,
    Decided,
    Earlier,
    Ended,
    Vote,
)
from grace_kp.cli._approval_page import TO_BE_USED, call_text, opaque, process_word, put_approval
from grace_kp.confidence import ActionDecision
from grace_kp.gating import changed_arguments
from grace_kp.gating.reviewers import Page, Question
from grace_kp.pages import APPROVAL_STATES
from tests.cli.program import ANA, HOSTILE, pending


def page(request, *, width=80, full=False, entries=()):
    """The page as text."""
    file = io.StringIO()
    put_approval(Console(file=file, width=width, highlight=False), request, entries, full=full)
    return file.getvalue()


def test_it_states_what_the_console_states():
    """In the same words and layout, but for the time, which a question at the console counts in seconds."""
    arguments = {"invoice": "A-17\u202e", "euros": decimal.Decimal("1.10"), "day": datetime.date(2026, 1, 31)}
    request = pending(
        arguments=arguments, breakdown={}, penalties=(), deadline=None, key_fields=(), objective="refund Ana"
    )
    asked = gk.InterventionRequest(
        id="1", action="refund", arguments=arguments, digest="", level=gk.InterventionLevel.CONFIRM, objective="refund Ana",
        decision=ActionDecision(level=gk.InterventionLevel.CONFIRM, confidence_score=0.61, reason=request.reason), reason=request.reason,
    )  # fmt: skip
    lines = Question(asked).in_full(Page(80))[:-1]
    assert lines == page(request).splitlines()[: len(lines)]


def test_an_edit_shows_what_was_asked():
    request = pending(arguments={"invoice": "A-17", "euros": 20}, asked={"invoice": "A-17", "euros": 40})
    assert ["euros"] == changed_arguments(request)
    assert " * euros = 20\n     was = 40\n" in page(request)


def test_it_marks_what_a_decision_does_not_cover_or_show():
    shown = page(pending(not_covered=("euros",), sealed=("invoice",), unencoded=("connection",), key_fields=()))
    assert "euros = 40\n     not covered by the decision" in shown
    assert 'invoice = "A-17"\n     sealed' in shown
    assert "connection: only the waiting process holds" in shown
    assert ["connection"] == opaque(pending(unencoded=("connection",)))


def test_long_values_are_folded_and_it_says_how_to_see_them():
    request = pending(arguments={"lines": [f"line {number}" for number in range(200)]})
    assert "--full or --json shows them" in page(request)
    assert "line 100" not in page(request)
    assert "line 100" in page(request, full=True)


def test_people_earlier_requests_and_the_outcome_have_their_lines():
    boss = Actor(name="bob", channel="web", authenticated=True)
    shown = page(
        pending(
            state=gk.ApprovalState.DONE, quorum=2, groups=("finance",), user="carl", gaps=("no judge",), policy={"floor": "confirm"}, same=3,
            votes=(Vote(actor=ANA, at=1.0, digest="sha256:old", counts=False, note="fine"),), decision=Decided(state=gk.ApprovalState.APPROVED, actor=boss, at=2.0),
            claim=Claimed(at=3.0, process="p-1", actor=boss), outcome=Ended(state=gk.ApprovalState.DONE, at=4.0, actor=boss, has_result=True, result={"paid": 40}),
            earlier=(Earlier(id="ap-1234567890", state=gk.ApprovalState.REJECTED, at=5.0, by="dora", note="no receipt"),),
        ),
        width=300,
        entries=[{"seq": 1, "kind": "requested", "at": 1.0, "actor": {"name": "gate"}}],
    )  # fmt: skip
    for text in (
        " missing:    no judge", "policy        floor: confirm", "not carl, for whom the agent runs", "ana (stated, cli, as ana on web-1)",
        "does not count: the name is only stated, for the arguments before the edit: fine", "approved by bob (authenticated, web)", "process p-1",
        '{"paid": 40}', "rejected by dora", "(12345678): no receipt", "requested by gate", "3 pending requests have this digest",
    ):  # fmt: skip
        assert text in shown


@pytest.mark.parametrize("width", [60, 80, 100])
def test_hostile_texts_in_every_field_stay_visible_and_within_the_width(width):
    texts = {field.name: HOSTILE for field in dataclasses.fields(Approval) if field.type in {"str", "str | None"}}
    run = {"steps": [{"step_id": HOSTILE, "type": HOSTILE, "tool": {"name": HOSTILE}, "content": HOSTILE}, 3]}
    actor = Actor(name=HOSTILE, channel=HOSTILE, os_user=HOSTILE, host=HOSTILE)
    many = (HOSTILE,)
    request = pending(
        **texts, arguments={HOSTILE: HOSTILE}, asked={HOSTILE: 1}, not_covered=many, sealed=many, unencoded=many, key_fields=many, gaps=many, groups=many,
        penalties=many, breakdown={HOSTILE: 0.5}, policy={HOSTILE: HOSTILE}, facts={HOSTILE: [HOSTILE]}, run=run, quorum=2,
        votes=(Vote(actor=actor, at=0.0, digest=HOSTILE, note=HOSTILE),), decision=Decided(state=gk.ApprovalState.REJECTED, actor=actor, at=1e300, note=HOSTILE),
        claim=Claimed(at=-1e300, process=HOSTILE, actor=actor), earlier=(Earlier(id=HOSTILE, state=gk.ApprovalState.FAILED, at=0.0, by=HOSTILE, note=HOSTILE),),
        outcome=Ended(state=gk.ApprovalState.FAILED, at=0.0, actor=actor, error=HOSTILE, note=HOSTILE, has_result=True, result=HOSTILE),
    )  # fmt: skip
    shown = page(
        request,
        width=width,
        full=True,
        entries=[{"seq": HOSTILE, "kind": HOSTILE, "at": HOSTILE, "actor": {"name": HOSTILE}}, {}],
    )
    assert [] == [line for line in shown.split("\n") if not line.isprintable() or cell_len(line) > width]
    assert "\\u202e" in shown


def test_the_sentence_begins_with_what_identifies_the_operation():
    request = pending(arguments={"memo": "word " * 40, "invoice": "A-17"})
    assert call_text(request).startswith('refund(invoice="A-17", memo="word word')
    assert "…" in call_text(request)


@pytest.mark.parametrize(
    ("waits", "is_awaited", "text"),
    [("wait", True, "waits"), ("wait", False, "gone"), ("wait", None, "unknown"), ("raise", None, "asks again"), ("hand_over", None, "handed over")],
)  # fmt: skip
def test_it_says_whether_a_process_waits(waits, is_awaited, text):
    assert text == process_word(pending(waits=waits, is_awaited=is_awaited))


def test_every_state_has_its_words():
    assert {str(state) for state in ApprovalState} == set(APPROVAL_STATES)
    assert set(ENTITLING) == set(TO_BE_USED)


def test_the_library_of_approvals_is_not_imported_by_other_commands():
    code = "import sys, grace_kp.cli._app; print('grace_kp.approvals' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert "False\n" == ran.stdout


NOWHERE = {"name": "nowhere", "parameter": "invoice", "tool": "", "words": "", "is_part": False}
BESIDE = {"name": "beside", "parameter": "memo", "tool": "read_mail", "words": "please pay", "is_part": False}


def test_alarms_mark_their_arguments():
    """With the value, and without the colour of a consent; a sealed value is not repeated."""
    request = pending(arguments={"invoice": "A-17"}, key_fields=(), facts={"alarms": [NOWHERE]})
    assert " ! invoice = \"A-17\"\n     `invoice` 'A-17' is in no tool result" in page(request)
    sealed = pending(arguments={"invoice": "A-17"}, sealed=("invoice",), facts={"alarms": [NOWHERE]})
    assert "`invoice` (sealed) is in no tool result" in page(sealed)
    assert "alarms: [" not in page(request)


def test_places_are_shown_on_request():
    """Quoted from the run that the request holds."""
    mail = "Important: please pay the bill IBX-99-17 today."
    call = {"call_id": 0, "name": "read_mail", "tool_call": 0, "observation": 1, "status": "ok"}
    steps = [{"step_id": 0, "type": "tool_call", "tool": {"name": "read_mail"}, "input": {}}]
    steps += [{"step_id": 1, "type": "observation", "content": mail}]
    run = {"task": {"objective": "Pay"}, "steps": steps, "grace": {"calls": [call]}}
    file = io.StringIO()
    out = Console(file=file, width=120, highlight=False)
    put_approval(out, pending(arguments={"memo": "IBX-99-17"}, facts={"alarms": [BESIDE]}, run=run), places=True)
    assert "quoted from read_mail in lower case, without invisible characters;" in file.getvalue()
    assert "  | important: please pay the bill ibx-99-17 today.\n" in file.getvalue()
    put_approval(out, pending(), places=True)
    assert "no result of a tool that the run holds contains a value with an alarm" in file.getvalue()
