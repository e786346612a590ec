"""The verbs of people: who may decide, how votes count, how verbs are refused, and what an edit may change."""

from __future__ import annotations

import datetime as dt
import decimal
import json

import pytest

from grace_kp.approvals import (
    Actor,
    PolicyNow,
    RequestStore,
    RowQuery,
    Secret,
    Standing,
    account_mark,
    consents,
    new_key,
    person,
    reason_without_account,
)
from grace_kp.approvals._request import DECIDING_ROLES
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, EditRefused, NotEntitled, UnknownApproval
from grace_kp.store import open_store
from grace_kp.web import Role
from grace_kp.web._site import RIGHTS, Right
from tests.approvals.shops import ANA, BO, CY, Shop, asked, claim, keyed, logged_in, sealing

FINANCE = {"ana": ["finance"], "bo": ["finance", "legal"], "dee": ["legal"]}


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


def test_an_answer_has_words_and_is_not_replaced(shop):
    approval = shop.requests.file(asked())
    with pytest.raises(ApprovalError, match="needs words"):
        shop.requests.respond(approval.id, " \n", by=ANA)
    shop.requests.respond(approval.id, "ask for the receipt", by=ANA)
    with pytest.raises(AlreadyDecided):
        shop.requests.respond(approval.id, "never mind", by=ANA)


def test_a_decision_after_the_end_names_the_end(shop):
    lapsed = shop.requests.approve(shop.requests.file(asked()).id, by=ANA)
    approval = shop.requests.file(asked())
    shop.clock.now += 3_600
    with pytest.raises(AlreadyDecided, match="was expired at") as caught:
        shop.requests.approve(approval.id, by=ANA)
    assert ("", "expired") == (caught.value.by, caught.value.state)
    with pytest.raises(AlreadyDecided, match="was expired"):
        shop.requests.approve(lapsed.id, by=ANA)


def test_repeating_consent_after_the_action_ran_changes_nothing(shop):
    approval = shop.requests.approve(shop.requests.file(asked()).id, by=ANA)
    claim(shop.requests, approval)
    assert "claimed" == shop.requests.approve(approval.id, by=ANA).state
    with pytest.raises(AlreadyDecided, match=r"is being carried out, claimed by gate .* approved by ana"):
        shop.requests.approve(approval.id, by=BO)


def test_a_digest_that_is_not_current_is_refused(shop):
    approval = shop.requests.file(asked())
    for verb in (shop.requests.approve, shop.requests.reject, shop.requests.skip, shop.requests.retry):
        with pytest.raises(ChangedSinceShown, match=approval.digest):
            verb(approval.id, by=ANA, digest="sha256:00")
    with pytest.raises(ChangedSinceShown):
        shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest="sha256:00")
    assert ["requested"] == shop.kinds()


def test_a_quorum_needs_distinct_people(shop):
    approval = shop.requests.file(asked(quorum=2))
    for name in ("ana", "ANA", "ana  "):
        assert "pending" == shop.requests.approve(approval.id, by=logged_in(name)).state
    decided = shop.requests.approve(approval.id, by=logged_in("bo"))
    assert ("approved", ["ana", "bo"]) == (
        decided.state,
        sorted(vote.actor.name.lower().strip() for vote in decided.votes),
    )


def test_a_quorum_counts_logins_only(shop):
    approval = shop.requests.file(asked(quorum=2))
    assert [False] == [vote.counts for vote in shop.requests.approve(approval.id, by=ANA).votes]
    shop.requests.approve(approval.id, by=BO)
    shop.requests.approve(approval.id, by=logged_in("cy"))
    assert "pending" == shop.requests.get(approval.id).state
    assert "approved" == shop.requests.approve(approval.id, by=logged_in("ana")).state


@pytest.mark.parametrize("fields", [{"groups": ("finance",)}, {"quorum": 2, "identity": "stated"}])
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "withdraw"])
def test_the_user_of_the_run_does_not_decide(shop, fields, verb):
    """Where a group or a quorum is set, however the name is spelt. Everybody may withdraw."""
    approval = shop.requests.file(asked(user="Ana", **fields))
    with pytest.raises(NotEntitled, match="the run acts for this person"):
        VERBS[verb][1](shop.requests, approval.id, ANA)
    assert ["requested"] == shop.kinds()
    assert "cancelled" == shop.requests.withdraw(approval.id, by=ANA).state


@pytest.mark.parametrize("name", ["cy", "dee", "Bo"])
def test_only_members_of_the_group_decide(shop, name):
    approval = shop.requests.file(asked(groups=("finance",)))
    with pytest.raises(NotEntitled, match="needs a member of finance"):
        shop.requests.approve(approval.id, by=Actor(name=name))
    assert "approved" == shop.requests.approve(approval.id, by=BO).state


@pytest.mark.parametrize("bad", ["nope", "ap-\x1b[2J\u202e", "", None, 3, "x" * 10_000])
def test_an_id_that_does_not_exist_is_a_clear_error(shop, bad):
    with pytest.raises(UnknownApproval) as caught:
        shop.requests.approve(bad, by=ANA)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_hostile_notes_are_refused_or_cleaned(shop):
    approval = shop.requests.file(asked())
    with pytest.raises(ApprovalError, match="has 10,001 characters, and at most 10,000"):
        shop.requests.approve(approval.id, by=ANA, note="n" * 10_001)
    with pytest.raises(ApprovalError, match="must be a string"):
        shop.requests.reject(approval.id, by=ANA, reason=None)
    for name in ("", "n" * 201, "\u200b\u2066"):  # nobody could be asked about a decision by a name that shows nothing
        with pytest.raises(ApprovalError, match="needs a name of 1 to 200"):
            shop.requests.approve(approval.id, by=Actor(name=name))
    assert ["requested"] == shop.kinds()
    decided = shop.requests.approve(approval.id, by=CY, note="password=hunter22hunter \ud800 \u202e")
    assert "hunter22" not in decided.decision.note
    assert "hunter22" not in str([link.contents for link in shop.tables.links()])


def test_each_vote_is_an_entry_and_the_last_is_the_decision():
    shop = Shop()
    approval = shop.requests.file(asked(quorum=2, identity="stated"))
    shop.requests.approve(approval.id, by=ANA, note="first")
    decided = shop.requests.approve(approval.id, by=BO, note="second")
    assert ["requested", "voted", "decided"] == shop.kinds()
    assert [(1, 2), (2, 2)] == [(entry["facts"]["votes"], entry["facts"]["quorum"]) for entry in shop.entries()[1:]]
    assert ("approved", ["first", "second"]) == (decided.state, [vote.note for vote in decided.votes])
    assert "bo" == decided.decision.actor.name


def test_a_hostile_name_is_shown_without_its_control_characters():
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
    assert person(first) == person(second)


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
    actor = Actor.here(secret, authenticated=True)
    assert ("[REDACTED:api_key]", False, actor) == (actor.name, actor.authenticated, Actor.from_dict(actor.to_dict()))


def test_an_edit_is_consent_to_its_result(shop):
    approval = shop.requests.file(asked())
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest=approval.digest)
    assert ("edited", {"invoice": "R-1", "euros": 20}, 500) == (edited.state, edited.arguments, edited.asked["euros"])
    assert approval.digest == edited.asked_digest != edited.digest
    with pytest.raises(ChangedSinceShown):
        claim(shop.requests, approval)
    assert "claimed" == claim(shop.requests, edited).approval.state


def test_an_edit_is_idempotent(shop):
    approval = shop.requests.file(asked())
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest=approval.digest)
    assert edited == shop.requests.edit(approval.id, {"euros": 20}, by=ANA, digest=approval.digest)
    assert edited == shop.requests.edit(approval.id, {"euros": 20}, by=ANA)
    with pytest.raises(AlreadyDecided, match="edited by ana"):
        shop.requests.edit(approval.id, {"euros": 21}, by=ANA)
    with pytest.raises(AlreadyDecided, match="edited by ana"):
        shop.requests.edit(approval.id, {"euros": 20}, by=BO)


def test_an_edit_restarts_the_count(shop):
    approval = shop.requests.file(asked(quorum=2))
    shop.requests.approve(approval.id, by=logged_in("ana"))
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=logged_in("bo"))
    assert ("pending", ["bo"]) == (edited.state, [vote.actor.name for vote in edited.votes])
    with pytest.raises(ChangedSinceShown, match="changed by bo"):
        shop.requests.approve(approval.id, by=logged_in("ana"), digest=approval.digest)
    with pytest.raises(ChangedSinceShown, match="does not state which were shown"):
        shop.requests.approve(approval.id, by=logged_in("ana"))
    shop.requests.get(approval.id, by=logged_in("ana"))
    assert "edited" == shop.requests.approve(approval.id, by=logged_in("ana")).state


def test_an_edit_takes_the_stricter_policy(shop):
    approval = shop.requests.file(asked())
    policy = PolicyNow(floor="escalate", groups=("finance",), quorum=2)
    edited = shop.requests.edit(approval.id, {"euros": 20}, by=logged_in("ana"), policy=policy)
    assert ("pending", "escalate", ("finance",), 2) == (edited.state, edited.level, edited.groups, edited.quorum)
    edited = shop.requests.approve(approval.id, by=logged_in("bo"), digest=edited.digest)
    assert "claimed" == claim(shop.requests, edited, policy=policy).approval.state


@pytest.mark.parametrize(
    ("policy", "error"),
    [(PolicyNow(denies=True), EditRefused), (PolicyNow(groups=("board",)), EditRefused), (PolicyNow(groups=("legal",)), NotEntitled)],
)  # fmt: skip
def test_an_edit_that_the_policy_does_not_allow_is_refused(shop, policy, error):
    fields = {"groups": ("finance",)} if error is EditRefused else {"groups": ("finance", "legal")}
    approval = shop.requests.file(asked(**fields))
    with pytest.raises(error):
        shop.requests.edit(approval.id, {"euros": 20}, by=ANA, policy=policy)
    assert ["requested"] == shop.kinds()


@pytest.mark.parametrize(
    ("changes", "fields", "message"),
    [
        ({}, {}, "maps parameter names to values"),
        ([("euros", 1)], {}, "maps parameter names to values"),
        ({3: 1}, {}, "maps parameter names to values"),
        ({"euros": 500}, {}, "changes nothing"),
        ({"action": "delete_all"}, {}, "has no parameter 'action'; it has invoice, euros"),
        ({"invoice": "R-2"}, {}, "invoice identifies the operation"),
        ({"euros": 20}, {"not_covered": ("euros",)}, "euros is not covered"),
        ({"euros": 20}, {"unencoded": ("session",)}, "only the process that waits holds session"),
        ({"euros": object()}, {}, "has no encoding"),
        ({"euros": "password=hunter22hunter"}, {}, "no key to seal it with"),
    ],
)
def test_what_cannot_be_edited_is_refused(shop, changes, fields, message):
    approval = shop.requests.file(keyed(**fields))
    with pytest.raises(EditRefused, match=message):
        shop.requests.edit(approval.id, changes, by=ANA)
    assert ["requested"] == shop.kinds()


def test_encoded_values_can_be_passed(shop):
    approval = shop.requests.file(asked())
    for bad in ({"$decimal": "x"}, {"$sealed": "AAAA", "key": "k"}, {"a": [{"$sealed": "AAAA"}]}, float("nan")):
        with pytest.raises(EditRefused):
            shop.requests.edit(approval.id, {"euros": bad}, by=ANA, is_encoded=True)
    edited = shop.requests.edit(approval.id, {"euros": {"$decimal": "1.10"}}, by=ANA, is_encoded=True)
    assert decimal.Decimal("1.10") == edited.arguments["euros"]


def test_an_edit_fits_the_schema_of_the_action(shop):
    """Where the action itself is not at hand."""
    day = {"type": "string", "format": "date", "x-encoding": "$date"}
    schema = {"properties": {"invoice": {"type": "string"}, "euros": {"type": "integer"}, "day": day}}
    approval = shop.requests.file(asked({"invoice": "R-1", "euros": 500, "day": dt.date(2026, 1, 1)}, schema=schema))
    for is_encoded in (False, True):
        with pytest.raises(EditRefused, match="euros: '20' is not of type 'integer'"):
            shop.requests.edit(approval.id, {"euros": "20"}, by=ANA, is_encoded=is_encoded)
    assert ["requested"] == shop.kinds()
    assert dt.date(2026, 1, 31) == shop.requests.edit(approval.id, {"day": "2026-01-31"}, by=ANA).arguments["day"]


def test_sealed_parameters_are_edited_where_their_key_is():
    """Elsewhere an edit is refused, because nobody there can compute the digest."""
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    approval = shop.requests.file(*sealing(secret, {"iban": "DE89370400440532013000", "euros": 5}, ("iban",)))
    with pytest.raises(EditRefused, match="iban is sealed and cannot be opened here"):
        shop.another("p2", secret=None).edit(approval.id, {"euros": 6}, by=ANA)
    edited = shop.requests.edit(approval.id, {"euros": 6}, by=ANA)
    assert {"iban": "DE89370400440532013000", "euros": 6} == edited.arguments
    assert "$sealed" in edited.encoded["iban"]
    assert "[SEALED]" == repr(shop.another("p2", secret=None).get(approval.id).arguments["iban"])


def test_arguments_that_were_changed_in_the_store_are_not_edited(shop):
    approval = shop.requests.file(asked(digest="sha256:00"))
    with pytest.raises(EditRefused, match="do not have its digest"):
        shop.requests.edit(approval.id, {"euros": 6}, by=ANA)


@pytest.mark.parametrize("name", ["", "  ", None, 3, "a" * 201])
def test_who_decides_has_a_name(name):
    with pytest.raises(ValueError, match="by must be a name"):
        Actor.here(name)


CREATED = 1_000.25


def account_of(name, created=CREATED):
    return Actor(name=name, channel="web", authenticated=True, account=account_mark(created))


@pytest.fixture
def house():
    made = Shop()
    put(made)
    return made


def put(house, name="ana", role="approver", created=CREATED):
    data = None if role is None else json.dumps({"name": name, "role": role, "created": created}).encode()
    with house.tables.transaction() as writes:
        writes.put_document("account", name, data)  # stores that exist hold accounts by this name


LOSSES = {
    "removed": {"role": None},
    "no longer includes": {"role": "viewer"},
    "was removed": {"created": CREATED + 1},  # somebody else got the name
}


@pytest.mark.parametrize(("words", "change"), LOSSES.items())
def test_a_vote_counts_while_its_author_may_decide(house, words, change):
    request = house.requests.file(asked(quorum=2, identity="authenticated"))
    house.requests.approve(request.id, by=account_of("ana"))
    put(house, **change)
    assert words in reason_without_account(house.tables, account_of("ana"))
    assert 0 == consents(house.requests.get(request.id))
    assert "pending" == house.requests.approve(request.id, by=logged_in("bo")).state
    assert 1 == consents(house.requests.get(request.id))


def test_who_comes_back_may_vote_again(house):
    request = house.requests.file(asked(quorum=2, identity="authenticated"))
    house.requests.approve(request.id, by=account_of("ana"))
    put(house, created=CREATED + 1)
    again = account_of("ana", CREATED + 1)
    assert [request.id] == [each.id for each in house.requests.pending(decider=again)]
    assert 1 == consents(house.requests.approve(request.id, by=again))
    assert "approved" == house.requests.approve(request.id, by=logged_in("bo")).state


@pytest.mark.parametrize("change", LOSSES.values())
def test_an_account_that_was_just_lost_decides_nothing(house, change):
    """The page that was admitted before the change comes to the requests after it."""
    request = house.requests.file(asked())
    put(house, **change)
    for decide in (house.requests.approve, house.requests.reject):
        with pytest.raises(NotEntitled, match="ana"):
            decide(request.id, by=account_of("ana"))
    assert "pending" == house.requests.get(request.id).state


@pytest.mark.parametrize("change", LOSSES.values())
def test_a_standing_approval_works_while_its_author_may_decide(house, change):
    """Also for what it has approved and nobody has started: the claim is refused."""
    new = asked()
    parameters, until = {name: {"any": True} for name in new.encoded}, house.clock() + 3_600
    terms = Standing(action=new.action, domain=new.domain, parameters=parameters, until=until, uses=10)
    granted = house.requests.grant(terms, by=account_of("ana"))
    before = house.requests.file(new)
    assert ("approved", granted.id) == (before.state, before.standing)
    put(house, **change)
    assert "pending" == house.requests.file(asked()).state
    with pytest.raises(AlreadyDecided, match="may no longer decide"):
        claim(house.requests, before)


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"role": "admin"}', b'{"created": "x", "role": "admin"}'])
def test_an_account_that_cannot_be_read_consents_to_nothing(house, data):
    with house.tables.transaction() as writes:
        writes.put_document("account", "ana", data)
    assert "cannot be read" in reason_without_account(house.tables, account_of("ana"))


def test_the_roles_that_decide_are_those_of_the_pages():
    assert {role.value for role in Role if Right.DECIDE in RIGHTS[role]} == DECIDING_ROLES


def test_a_decision_that_was_made_stays(house):
    """Names without an account are not compared with accounts."""
    request = house.requests.file(asked())
    house.requests.approve(request.id, by=account_of("ana"))
    put(house, role=None)
    put(house, "bo", role="viewer")
    shown = house.requests.get(request.id)
    assert ("approved", 1, "") == (shown.state, consents(shown), reason_without_account(house.tables, logged_in("bo")))
