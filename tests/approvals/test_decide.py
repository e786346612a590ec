"""The verbs of people: who may decide, how votes count, and how verbs are refused."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor, RequestStore, RowQuery
from grace_kp.approvals._people import person
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, NotEntitled, UnknownApproval
from grace_kp.store import open_store
from tests.approvals.shops import ANA, BO, CY, Shop, asked, claim, logged_in

FINANCE = {"ana": ["finance"], "bo": ["finance"], "dee": ["legal"]}


@pytest.fixture
def shop():
    return Shop(groups=FINANCE)


VERBS = {
    "approve": ("approved", lambda requests, id_, actor: requests.approve(id_, by=actor, note="x")),
    "reject": ("rejected", lambda requests, id_, actor: requests.reject(id_, by=actor, reason="x")),
    "respond": ("responded", lambda requests, id_, actor: requests.respond(id_, "x", by=actor)),
    "skip": ("skipped", lambda requests, id_, actor: requests.skip(id_, by=actor, note="x")),
    "retry": ("retried", lambda requests, id_, actor: requests.retry(id_, by=actor, note="x")),
    "withdraw": ("cancelled", lambda requests, id_, actor: requests.withdraw(id_, by=actor, reason="x")),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_idempotent(shop, verb):
    """The same decision by the same person changes nothing more and raises nothing."""
    state, call = VERBS[verb]
    approval = shop.requests.file(asked())
    first = call(shop.requests, approval.id, ANA)
    again = call(shop.requests, approval.id, ANA)
    assert (state, "x", first) == (first.state, first.decision.note, again)
    assert 2 == len(shop.entries())


@pytest.mark.parametrize("first", VERBS)
@pytest.mark.parametrize("second", VERBS)
def test_a_second_decision_is_refused(shop, first, second):
    """The error names the first one, its author and its time. Only a decision in favour can still be withdrawn."""
    approval = shop.requests.file(asked())
    before = VERBS[first][1](shop.requests, approval.id, ANA)
    if (first, second) == ("approve", "withdraw"):
        assert "cancelled" == shop.requests.withdraw(approval.id, by=BO).state
        return
    with pytest.raises(AlreadyDecided, match=f"{approval.id} was {VERBS[first][0]} by ana at 1970-01-01") as caught:
        VERBS[second][1](shop.requests, approval.id, BO)
    assert ("ana", 1_000.0, VERBS[first][0]) == (caught.value.by, caught.value.at, caught.value.state)
    assert before == shop.requests.get(approval.id)


def test_other_words_are_another_answer(shop):
    """An agent must not act on words that replaced those it was sent."""
    approval = shop.requests.file(asked())
    shop.requests.respond(approval.id, "ask for the receipt", by=ANA)
    with pytest.raises(AlreadyDecided):
        shop.requests.respond(approval.id, "never mind", by=ANA)


def test_an_answer_has_words(shop):
    """An agent can do nothing with an empty one."""
    approval = shop.requests.file(asked())
    with pytest.raises(ApprovalError, match="needs words"):
        shop.requests.respond(approval.id, " \n", by=ANA)
    assert ["requested"] == shop.kinds()


def test_a_decision_after_the_end_names_the_end(shop):
    """Nobody decided it, so that the error names nobody."""
    approval = shop.requests.file(asked())
    shop.clock.now += 3_600
    with pytest.raises(AlreadyDecided, match="was expired at") as caught:
        shop.requests.approve(approval.id, by=ANA)
    assert ("", "expired") == (caught.value.by, caught.value.state)
    assert "expired" == shop.requests.get(approval.id).state


def test_repeating_consent_that_has_lapsed_does_not_look_like_success(shop):
    """Whoever approves something that can no longer run learns of it."""
    approval = shop.requests.approve(shop.requests.file(asked()).id, by=ANA)
    shop.clock.now += 600
    with pytest.raises(AlreadyDecided, match="was expired"):
        shop.requests.approve(approval.id, by=ANA)


def test_repeating_consent_after_the_action_ran_changes_nothing(shop):
    """A client that lost the answer asks again."""
    approval = shop.requests.approve(shop.requests.file(asked()).id, by=ANA)
    claim(shop.requests, approval)
    assert "claimed" == shop.requests.approve(approval.id, by=ANA).state
    with pytest.raises(AlreadyDecided, match=r"is being carried out, claimed by gate .* approved by ana"):
        shop.requests.approve(approval.id, by=BO)


def test_a_digest_that_is_not_current_is_refused(shop):
    """By every decision."""
    approval = shop.requests.file(asked())
    for verb in (shop.requests.approve, shop.requests.reject, shop.requests.skip, shop.requests.retry):
        with pytest.raises(ChangedSinceShown, match=approval.digest):
            verb(approval.id, by=ANA, digest="sha256:00")
    assert ["requested"] == shop.kinds()


def test_a_quorum_needs_distinct_people(shop):
    """One person under two spellings is one."""
    approval = shop.requests.file(asked(quorum=2))
    for name in ("ana", "ANA", "ana  "):
        assert "pending" == shop.requests.approve(approval.id, by=logged_in(name)).state
    decided = shop.requests.approve(approval.id, by=logged_in("bo"))
    assert ("approved", ["ana", "bo"]) == (
        decided.state,
        sorted(vote.actor.name.lower().strip() for vote in decided.votes),
    )


def test_a_quorum_counts_logins_only(shop):
    """A name that was only stated is recorded and does not count; with a login it counts."""
    approval = shop.requests.file(asked(quorum=2))
    assert [False] == [vote.counts for vote in shop.requests.approve(approval.id, by=ANA).votes]
    shop.requests.approve(approval.id, by=BO)
    shop.requests.approve(approval.id, by=logged_in("cy"))
    assert "pending" == shop.requests.get(approval.id).state
    assert "approved" == shop.requests.approve(approval.id, by=logged_in("ana")).state


def test_one_rejection_closes(shop):
    """Whatever was voted, also by somebody who voted for it."""
    approval = shop.requests.file(asked(quorum=3, identity="stated"))
    shop.requests.approve(approval.id, by=ANA)
    assert "rejected" == shop.requests.reject(approval.id, by=ANA).state


@pytest.mark.parametrize("fields", [{"groups": ("finance",)}, {"quorum": 2, "identity": "stated"}])
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "withdraw"])
def test_the_user_of_the_run_does_not_decide(shop, fields, verb):
    """Where a group or a quorum is set, however the name is spelt. Everybody may withdraw."""
    approval = shop.requests.file(asked(user="Ana", **fields))
    with pytest.raises(NotEntitled, match="the run acts for this person"):
        VERBS[verb][1](shop.requests, approval.id, ANA)
    assert ["requested"] == shop.kinds()
    assert "cancelled" == shop.requests.withdraw(approval.id, by=ANA).state


def test_the_user_of_the_run_decides_where_nothing_is_required(shop):
    """To confirm what one does oneself is no four eyes."""
    assert "approved" == shop.requests.approve(shop.requests.file(asked(user="ana")).id, by=ANA).state


@pytest.mark.parametrize("name", ["cy", "dee", "Bo"])
def test_only_members_of_the_group_decide(shop, name):
    """Names are compared as they are configured."""
    approval = shop.requests.file(asked(groups=("finance",)))
    with pytest.raises(NotEntitled, match="needs a member of finance"):
        shop.requests.approve(approval.id, by=Actor(name=name))
    assert "approved" == shop.requests.approve(approval.id, by=BO).state


@pytest.mark.parametrize("bad", ["nope", "ap-\x1b[2J\u202e", "", None, 3, "x" * 10_000])
def test_an_id_that_does_not_exist_is_a_clear_error(shop, bad):
    """Its message obeys no control characters and is short."""
    with pytest.raises(UnknownApproval) as caught:
        shop.requests.approve(bad, by=ANA)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_hostile_notes_are_refused_or_cleaned(shop):
    """Too long a note is refused with its length; a secret does not reach the store."""
    approval = shop.requests.file(asked())
    with pytest.raises(ApprovalError, match="has 10,001 characters, and at most 10,000"):
        shop.requests.approve(approval.id, by=ANA, note="n" * 10_001)
    with pytest.raises(ApprovalError, match="must be a text"):
        shop.requests.reject(approval.id, by=ANA, reason=None)
    for name in ("", "n" * 201, "\u200b\u2066"):  # nobody could be asked about a decision by a name that shows nothing
        with pytest.raises(ApprovalError, match="needs a name of 1 to 200"):
            shop.requests.approve(approval.id, by=Actor(name=name))
    assert ["requested"] == shop.kinds()
    decided = shop.requests.approve(approval.id, by=CY, note="password=hunter22hunter \ud800 \u202e")
    assert "hunter22" not in decided.decision.note
    assert "hunter22" not in str([link.contents for link in shop.tables.links()])


def test_each_vote_is_an_entry_and_the_last_is_the_decision():
    """The entries state the count. Where the gate says so, names that were only stated count."""
    shop = Shop()
    approval = shop.requests.file(asked(quorum=2, identity="stated"))
    shop.requests.approve(approval.id, by=ANA, note="first")
    decided = shop.requests.approve(approval.id, by=BO, note="second")
    assert ["requested", "voted", "decided"] == shop.kinds()
    assert [(1, 2), (2, 2)] == [(entry["facts"]["votes"], entry["facts"]["quorum"]) for entry in shop.entries()[1:]]
    assert ("approved", ["first", "second"]) == (decided.state, [vote.note for vote in decided.votes])
    assert "bo" == decided.decision.actor.name


def test_a_hostile_name_is_shown_without_its_control_characters():
    """The error is printed at terminals."""
    shop = Shop()
    approval = shop.requests.file(asked())
    shop.requests.reject(approval.id, by=Actor(name="\x1b[2Jmallory\u202e"))
    with pytest.raises(AlreadyDecided, match=r"was rejected by \?\[2Jmallory\? at") as caught:
        shop.requests.approve(approval.id, by=ANA)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ana", "ANA "),
        ("straße", "STRASSE"),
        ("ana b", "ana  b"),
        ("ａｎａ", "ana"),
        ("an\u200ba", "\u202eana"),
        ("ana\u00ad", "ana\ufe0f"),
    ],
)
def test_spellings_of_one_name_are_one_person(first, second):
    """Otherwise one person could be a quorum."""
    assert person(first) == person(second)


@pytest.mark.parametrize("groups", [{"ana": "finance"}, {"ana": [1]}])
def test_groups_are_lists_of_names(groups):
    """A text would be a list of letters."""
    with pytest.raises(ValueError, match="must be a list of names"):
        RequestStore(open_store("memory:").approvals, groups=groups)


def test_people_whose_names_hold_secrets_are_still_compared():
    """The user of a run may not decide, two votes of one name are one, and a group finds its member; no store holds the secret."""
    secret = "ghp_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
    store = open_store("memory:")
    requests = RequestStore(store.approvals, groups={secret: ["finance"], "bo": ["finance"]})
    own = requests.file(asked(user=secret, groups=("finance",)))
    with pytest.raises(NotEntitled, match="acts for this person"):
        requests.approve(own.id, by=Actor.here(secret))
    other = requests.file(asked({"invoice": "R-2", "euros": 1}, groups=("finance",), quorum=2, identity="stated"))
    assert ["pending", "pending", "approved"] == [
        requests.approve(other.id, by=Actor.here(name)).state for name in (secret, secret, "bo")
    ]
    assert [other.id] == [approval.id for approval in requests.history(by=secret)]
    held = [row.data for row in store.approvals.rows(RowQuery())] + [link.data for link in store.approvals.links()]
    assert not any(secret.encode() in data for data in held)
