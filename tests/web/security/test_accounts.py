"""Accounts and secrets."""

from __future__ import annotations

import base64
import json
import time

import pytest

from grace_kp.approvals import ACCOUNT, verify
from grace_kp.errors import GraceError, StoreError
from grace_kp.web import Accounts, Role
from grace_kp.web.security._visitor import csrf_of, new_secret, new_token
from tests.approvals.shops import asked
from tests.web.inbox.forms import forms
from tests.web.security.conftest import OPERATOR, entries


@pytest.fixture
def accounts(tables):
    return Accounts(tables)


def problems(tables):
    return [problem.message for problem in verify(tables, at=time.time()).problems]


def test_a_token_leads_to_its_account(accounts, tmp_path):
    """No other text does, and the file of the store does not hold the token."""
    token = accounts.add("ana", Role.APPROVER, actor=OPERATOR)
    found = accounts.of_token(token)
    assert ("ana", Role.APPROVER) == (found.name, found.role)
    for wrong in ("", "gkp_", token[:-1], token + "x", token.upper(), found.token_sha256, "é", "\ud800"):
        assert accounts.of_token(wrong) is None
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"approver" in stored
    assert token.removeprefix("gkp_").encode() not in stored


def test_spellings_of_a_name_are_one_account(accounts):
    """As they are one person in a quorum."""
    accounts.add("Ana", Role.VIEWER, actor=OPERATOR)
    for spelling in ("ana", " ANA ", "ａｎａ"):
        with pytest.raises(GraceError, match="Ana has an account"):
            accounts.add(spelling, Role.ADMIN, actor=OPERATOR)
        assert "Ana" == accounts.get(spelling).name


@pytest.mark.parametrize("name", ["", "  ", "a" * 201, "a\nb", "a\x1b[31m", "a\u202eb", "\u200b"])
def test_a_name_that_cannot_be_shown_is_refused(accounts, name):
    """Nobody can pass for somebody else by characters that do not show."""
    with pytest.raises(ValueError, match="an account needs a name of 1 to 200 printable characters"):
        accounts.add(name, Role.VIEWER, actor=OPERATOR)


def test_a_new_token_ends_the_old_one(accounts):
    """At once, also for whoever reads the accounts in another process; a removed name is free for another account."""
    other = Accounts(accounts._tables)
    old = accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    assert other.of_token(old) is not None
    new = accounts.rotate("ANA", actor=OPERATOR)
    assert (None, "ana") == (other.of_token(old), other.of_token(new).name)
    accounts.remove("ana", actor=OPERATOR)
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    assert other.of_token(new) is None


@pytest.mark.parametrize("verb", ["rotate", "remove", "set_role"])
def test_an_unknown_name_is_refused(accounts, verb):
    """The message lists those that exist."""
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    arguments = (Role.ADMIN,) if verb == "set_role" else ()
    with pytest.raises(GraceError, match="there is no account 'ben'; accounts: ana"):
        getattr(accounts, verb)("ben", *arguments, actor=OPERATOR)


def test_the_last_admin_stays(accounts):
    """Unless that is forced; an admin beside others can go."""
    accounts.add("ana", Role.ADMIN, actor=OPERATOR)
    accounts.add("ben", Role.VIEWER, actor=OPERATOR)
    with pytest.raises(GraceError, match="ana is the last admin; --force"):
        accounts.remove("ana", actor=OPERATOR)
    with pytest.raises(GraceError, match="ana is the last admin; --force"):
        accounts.set_role("ana", Role.VIEWER, actor=OPERATOR)
    accounts.set_role("ben", Role.ADMIN, actor=OPERATOR)
    accounts.remove("ana", actor=OPERATOR)
    accounts.remove("ben", actor=OPERATOR, force=True)
    assert {} == dict(accounts.all())


def test_each_change_is_in_the_audit_trail(accounts, tables):
    """With its author, the role, and a mark of the token that is not its hash. The chain still holds."""
    accounts.add("Ana", Role.VIEWER, actor=OPERATOR)
    accounts.set_role("ana", Role.ADMIN, actor=OPERATOR)
    accounts.set_role("ana", Role.ADMIN, actor=OPERATOR)  # changes nothing
    accounts.rotate("ana", actor=OPERATOR)
    accounts.remove("ana", actor=OPERATOR, force=True)
    found = entries(tables, "account_changed")
    assert ["added", "role_changed", "rotated", "removed"] == [entry["facts"]["change"] for entry in found]
    assert ["viewer", "admin", "admin", "admin"] == [entry["facts"]["role"] for entry in found]
    assert {"ana"} == {entry["facts"]["account"] for entry in found}
    assert {"operator"} == {entry["actor"]["name"] for entry in found}
    marks = [entry["facts"].get("token") for entry in found]
    assert marks[0] == marks[1] != marks[2]
    assert [] == problems(tables)


def test_the_last_use_is_written(accounts):
    """At most every ten minutes, and not for an account that is gone."""
    now = [1_000.0]
    accounts = Accounts(accounts._tables, lambda: now[0])
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    ana = accounts.get("ana")
    for now[0], expected in ((1_000.0, 1_000.0), (1_500.0, 1_000.0), (1_700.0, 1_700.0)):
        accounts.note_use(ana)
        assert {"ana": expected} == accounts.seen()
    accounts.remove("ana", actor=OPERATOR)
    accounts.note_use(ana)
    assert {} == accounts.seen()


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"name": "ana"}', b'{"name": "ben", "role": "admin"}'])
def test_an_account_that_cannot_be_read_is_an_error(accounts, tables, data):
    """It is not left out, which would open the pages to whoever needs no account."""
    with tables.transaction() as writes:
        writes.put_document(ACCOUNT, "ana", data)
    with pytest.raises(StoreError, match="the account 'ana' in the store cannot be read"):
        accounts.all()


def test_an_account_without_an_entry_is_found(accounts, tables):
    """Also a role, a token or a removal that no entry accounts for."""
    accounts.add("ana", Role.VIEWER, actor=OPERATOR)
    data = json.loads(tables.document(ACCOUNT, "ana"))
    for change, expected in (
        ({"role": "admin"}, "the account ana is not as entry 1 has left it"),
        ({"token_sha256": "0" * 64}, "the account ana is not as entry 1 has left it"),
        (None, "the account ana was removed without an entry"),
    ):
        with tables.transaction() as writes:
            changed = None if change is None else json.dumps({**data, **change}).encode()
            writes.put_document(ACCOUNT, "ana", changed)
        assert [expected] == problems(tables)
    with tables.transaction() as writes:
        writes.put_document(ACCOUNT, "ana", json.dumps(data).encode())
        writes.put_document(ACCOUNT, "eve", json.dumps(data).encode())
    assert ["the account eve was added without an entry"] == problems(tables)


def test_a_removed_account_takes_its_consent_along(grace, accounts, add, visit):
    """A vote and a standing approval that were given on pages."""
    desk = grace.approvals.inbox.requests
    bo = visit(add("bo", Role.APPROVER))
    both = desk.file(asked(quorum=2, identity="authenticated"))
    one = desk.file(asked({"invoice": "R-2", "euros": 1}))
    assert 303 == bo.post_form(f"/approvals/{both.id}/approve", digest=both.digest).status_code
    review = bo.post(f"/approvals/{one.id}/grant", data=forms(bo.get(f"/approvals/{one.id}/grant").text)["grant"].submitted(kind0="any", kind1="any"))  # fmt: skip
    assert 303 == bo.post(f"/approvals/{one.id}/grant", data=forms(review.text)["grant"].submitted()).status_code
    assert "approved" == desk.file(asked({"invoice": "R-3", "euros": 9})).state

    cy = visit(add("cy", Role.APPROVER))
    accounts.rotate("bo", actor=OPERATOR)
    assert "approved" == desk.file(asked({"invoice": "R-4", "euros": 9})).state
    accounts.remove("bo", actor=OPERATOR)
    assert "pending" == desk.file(asked({"invoice": "R-5", "euros": 9})).state
    assert "the account of bo was removed" in cy.get("/approvals/standing").text
    assert 303 == cy.post_form(f"/approvals/{both.id}/approve", digest=both.digest).status_code
    assert "pending" == desk.get(both.id).state

    visit(add("bo", Role.APPROVER))
    assert "pending" == desk.file(asked({"invoice": "R-6", "euros": 9})).state


def test_a_token_has_256_random_bits_after_its_prefix():
    """People and scanners recognise the prefix, and no two tokens are equal."""
    tokens = {new_token() for _ in range(100)}
    assert 100 == len(tokens)
    for token in tokens:
        prefix, _, rest = token.partition("_")
        assert "gkp" == prefix
        assert 32 == len(base64.urlsafe_b64decode(rest + "="))


def test_the_token_of_forms_depends_on_the_session_and_the_name():
    """Another session, or another person of the same key, has another one."""
    secret = new_secret()
    assert csrf_of(secret) == csrf_of(secret)
    assert 4 == len({csrf_of(secret), csrf_of(new_secret()), csrf_of(secret, "ana"), csrf_of(secret, "ben")})
