"""Decisions of people: repeated, contradicted, late, by those who may and those who may not."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, NotEntitled, UnknownApproval
from tests.approvals.desks import ANA, BO, CY, Bureau, asked, claim, logged_in

FINANCE = {"ana": ["finance"], "bo": ["finance"], "dee": ["legal"]}


@pytest.fixture
def bureau():
    return Bureau(groups=FINANCE)


VERBS = {
    "approve": ("approved", lambda desk, id_, actor: desk.approve(id_, actor=actor, note="x")),
    "reject": ("rejected", lambda desk, id_, actor: desk.reject(id_, actor=actor, reason="x")),
    "respond": ("responded", lambda desk, id_, actor: desk.respond(id_, "x", actor=actor)),
    "skip": ("skipped", lambda desk, id_, actor: desk.skip(id_, actor=actor, note="x")),
    "retry": ("retried", lambda desk, id_, actor: desk.retry(id_, actor=actor, note="x")),
    "withdraw": ("cancelled", lambda desk, id_, actor: desk.withdraw(id_, actor=actor, reason="x")),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_idempotent(bureau, verb):
    """The same decision by the same person changes nothing more and raises nothing."""
    state, call = VERBS[verb]
    approval = bureau.desk.request(asked())
    first = call(bureau.desk, approval.id, ANA)
    again = call(bureau.desk, approval.id, ANA)
    assert (state, "x", first) == (first.state, first.decision.note, again)
    assert 2 == len(bureau.entries())


@pytest.mark.parametrize("first", VERBS)
@pytest.mark.parametrize("second", VERBS)
def test_a_second_decision_is_refused(bureau, first, second):
    """The error names the first one, its author and its time. Only a decision in favour can still be withdrawn."""
    approval = bureau.desk.request(asked())
    before = VERBS[first][1](bureau.desk, approval.id, ANA)
    if (first, second) == ("approve", "withdraw"):
        assert "cancelled" == bureau.desk.withdraw(approval.id, actor=BO).state
        return
    with pytest.raises(AlreadyDecided, match=f"{approval.id} was {VERBS[first][0]} by ana at 1970-01-01") as caught:
        VERBS[second][1](bureau.desk, approval.id, BO)
    assert ("ana", 1_000.0, VERBS[first][0]) == (caught.value.by, caught.value.at, caught.value.state)
    assert before == bureau.desk.get(approval.id)


def test_other_words_are_another_answer(bureau):
    """An agent must not act on words that replaced those it was sent."""
    approval = bureau.desk.request(asked())
    bureau.desk.respond(approval.id, "ask for the receipt", actor=ANA)
    with pytest.raises(AlreadyDecided):
        bureau.desk.respond(approval.id, "never mind", actor=ANA)


def test_an_answer_has_words(bureau):
    """An agent can do nothing with an empty one."""
    approval = bureau.desk.request(asked())
    with pytest.raises(ApprovalError, match="needs words"):
        bureau.desk.respond(approval.id, " \n", actor=ANA)
    assert ["requested"] == bureau.kinds()


def test_a_decision_after_the_end_names_the_end(bureau):
    """Nobody decided it, so that the error names nobody."""
    approval = bureau.desk.request(asked())
    bureau.clock.now += 3_600
    with pytest.raises(AlreadyDecided, match="was expired at") as caught:
        bureau.desk.approve(approval.id, actor=ANA)
    assert ("", "expired") == (caught.value.by, caught.value.state)
    assert "expired" == bureau.desk.get(approval.id).state


def test_repeating_consent_that_has_lapsed_does_not_look_like_success(bureau):
    """Whoever approves something that can no longer run learns of it."""
    approval = bureau.desk.approve(bureau.desk.request(asked()).id, actor=ANA)
    bureau.clock.now += 600
    with pytest.raises(AlreadyDecided, match="was expired"):
        bureau.desk.approve(approval.id, actor=ANA)


def test_repeating_consent_after_the_action_ran_changes_nothing(bureau):
    """A client that lost the answer asks again."""
    approval = bureau.desk.approve(bureau.desk.request(asked()).id, actor=ANA)
    claim(bureau.desk, approval)
    assert "claimed" == bureau.desk.approve(approval.id, actor=ANA).state
    with pytest.raises(AlreadyDecided, match=r"is being carried out, claimed by gate .* approved by ana"):
        bureau.desk.approve(approval.id, actor=BO)


def test_a_digest_that_is_not_current_is_refused(bureau):
    """By every decision."""
    approval = bureau.desk.request(asked())
    for verb in (bureau.desk.approve, bureau.desk.reject, bureau.desk.skip, bureau.desk.retry):
        with pytest.raises(ChangedSinceShown, match=approval.digest):
            verb(approval.id, actor=ANA, digest="sha256:00")
    assert ["requested"] == bureau.kinds()


def test_a_quorum_needs_distinct_people(bureau):
    """One person under two spellings is one."""
    approval = bureau.desk.request(asked(quorum=2))
    for name in ("ana", "ANA", "ana  "):
        assert "pending" == bureau.desk.approve(approval.id, actor=logged_in(name)).state
    decided = bureau.desk.approve(approval.id, actor=logged_in("bo"))
    assert ("approved", ["ana", "bo"]) == (
        decided.state,
        sorted(vote.actor.name.lower().strip() for vote in decided.votes),
    )


def test_a_quorum_counts_logins_only(bureau):
    """A name that was only stated is recorded and does not count; with a login it counts."""
    approval = bureau.desk.request(asked(quorum=2))
    assert [False] == [vote.counts for vote in bureau.desk.approve(approval.id, actor=ANA).votes]
    bureau.desk.approve(approval.id, actor=BO)
    bureau.desk.approve(approval.id, actor=logged_in("cy"))
    assert "pending" == bureau.desk.get(approval.id).state
    assert "approved" == bureau.desk.approve(approval.id, actor=logged_in("ana")).state


def test_a_quorum_can_accept_stated_names(bureau):
    """Where the gate says so."""
    approval = bureau.desk.request(asked(quorum=2, identity="stated"))
    bureau.desk.approve(approval.id, actor=ANA)
    assert "approved" == bureau.desk.approve(approval.id, actor=BO).state


def test_one_rejection_closes(bureau):
    """Whatever was voted, also by somebody who voted for it."""
    approval = bureau.desk.request(asked(quorum=3, identity="stated"))
    bureau.desk.approve(approval.id, actor=ANA)
    assert "rejected" == bureau.desk.reject(approval.id, actor=ANA).state


@pytest.mark.parametrize("fields", [{"groups": ("finance",)}, {"quorum": 2, "identity": "stated"}])
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "withdraw"])
def test_the_user_of_the_run_does_not_decide(bureau, fields, verb):
    """Where a group or a quorum is set, however the name is spelt. Everybody may withdraw."""
    approval = bureau.desk.request(asked(user="Ana", **fields))
    with pytest.raises(NotEntitled, match="the run acts for this person"):
        VERBS[verb][1](bureau.desk, approval.id, ANA)
    assert ["requested"] == bureau.kinds()
    assert "cancelled" == bureau.desk.withdraw(approval.id, actor=ANA).state


def test_the_user_of_the_run_decides_where_nothing_is_required(bureau):
    """To confirm what one does oneself is no four eyes."""
    assert "approved" == bureau.desk.approve(bureau.desk.request(asked(user="ana")).id, actor=ANA).state


@pytest.mark.parametrize("name", ["cy", "dee", "Bo"])
def test_only_members_of_the_group_decide(bureau, name):
    """Names are compared as they are configured."""
    approval = bureau.desk.request(asked(groups=("finance",)))
    with pytest.raises(NotEntitled, match="needs a member of finance"):
        bureau.desk.approve(approval.id, actor=Actor(name=name))
    assert "approved" == bureau.desk.approve(approval.id, actor=BO).state


@pytest.mark.parametrize("bad", ["nope", "ap-\x1b[2J\u202e", "", None, 3, "x" * 10_000])
def test_an_id_that_does_not_exist_is_a_clear_error(bureau, bad):
    """Its message obeys no control characters and is short."""
    with pytest.raises(UnknownApproval) as caught:
        bureau.desk.approve(bad, actor=ANA)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_hostile_notes_are_refused_or_cleaned(bureau):
    """Too long a note is refused with its length; a secret does not reach the store."""
    approval = bureau.desk.request(asked())
    with pytest.raises(ApprovalError, match="has 10,001 characters, and at most 10,000"):
        bureau.desk.approve(approval.id, actor=ANA, note="n" * 10_001)
    with pytest.raises(ApprovalError, match="must be a text"):
        bureau.desk.reject(approval.id, actor=ANA, reason=None)
    for actor in (Actor(name=""), Actor(name="n" * 201)):
        with pytest.raises(ApprovalError, match="name of 1 to 200"):
            bureau.desk.approve(approval.id, actor=actor)
    assert ["requested"] == bureau.kinds()
    decided = bureau.desk.approve(approval.id, actor=CY, note="password=hunter22hunter \ud800 \u202e")
    assert "hunter22" not in decided.decision.note
    assert "hunter22" not in str([link.contents for link in bureau.tables.links()])
