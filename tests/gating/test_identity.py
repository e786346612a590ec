"""What a gate checks for changes: arguments by content, a method's own object and named arguments by what identifies them."""

from __future__ import annotations

import asyncio
import collections
import inspect
import io
import sqlite3

import pytest

import grace_kp as gk
from grace_kp.gating import Coverage, Unknown, digest_of
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from tests.gating.inboxes import gated

R = gk.InterventionResponse


both = pytest.mark.parametrize("is_async", [False, True])


@both
@pytest.mark.parametrize(
    ("create", "change"),
    [
        (lambda: collections.deque([1]), lambda value: value.append(2)),
        (lambda: io.BytesIO(b"ab"), lambda value: value.close()),
        (lambda: [["a"]], lambda value: value[0].append("b")),
        (lambda: {"a": 1, "b": 2}, lambda value: value.update(a=value.pop("a"))),
    ],
)
def test_what_a_reviewer_changes_is_not_run(is_async, create, change):
    def reviewer(request):
        change(request.arguments["it"])
        return R("proceed")

    act, ran = gated(make_grace(unmeasured="notify", reviewer=reviewer), is_async=is_async, floor="confirm")
    with capture() as captured, pytest.raises(gk.ActionCancelled, match="were changed"):
        act(create())
    assert [] == ran
    assert "cancelled" == captured.only.grace["decisions"][0]["outcome"]


@both
def test_an_argument_that_cannot_be_checked_is_not_asked_about(is_async):
    reviewer = ScriptedReviewer()
    act, ran = gated(make_grace(unmeasured="notify", reviewer=reviewer), is_async=is_async, floor="confirm")
    connection = sqlite3.connect(":memory:")
    with capture() as captured, pytest.raises(gk.ActionCancelled) as refused:
        act(connection)
    connection.close()
    message = str(refused.value)
    assert "argument 'it' holds a sqlite3.Connection, whose contents cannot be seen" in message
    assert "@grace.gate(identity={...})" in message
    assert (0, []) == (reviewer.asked, ran)
    entry = captured.only.grace["decisions"][0]
    assert ("cancelled", "") == (entry["outcome"], entry["digest"])
    assert "sqlite3.Connection" in entry["unchecked"]


@both
def test_where_nobody_is_asked_it_runs(is_async):
    """Without a question there is no consent that a change could get around; the entry says what was not checked."""
    act, ran = gated(make_grace(unmeasured="notify", on_notify=lambda request: None), is_async=is_async, floor="notify")
    with capture() as captured:
        assert "done" == act(iter([1]))
    assert 1 == len(ran)
    entry = captured.only.grace["decisions"][0]
    assert "executed" == entry["outcome"]
    assert "list_iterator" in entry["unchecked"]


def test_a_denied_call_says_that_it_is_denied():
    act, ran = gated(make_grace(unmeasured="notify"), floor="deny")
    with pytest.raises(gk.ActionDenied):
        act(iter([1]))
    assert [] == ran


class Client:
    def __init__(self, url):
        self.base_url = url
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.account = collections.namedtuple("Account", "id")("a1")

    def close(self):
        self.connection.close()


@pytest.fixture
def client():
    client = Client("https://bank.example")
    yield client
    client.close()


@both
@pytest.mark.parametrize("changed", ["used", "base_url"])
@pytest.mark.parametrize("identifier", ["base_url", lambda client: {"url": [client.base_url]}])
def test_the_user_names_what_identifies_an_argument(is_async, identifier, changed, client):
    """A client that points elsewhere after the decision is another one; the rest of the value is not looked at."""

    def reviewer(request):
        setattr(request.arguments["it"], changed, "https://evil.example")
        return R("proceed")

    grace = make_grace(unmeasured="notify", reviewer=reviewer)
    act, ran = gated(grace, is_async=is_async, floor="confirm", identity={"it": identifier})
    if changed == "used":
        assert "done" == act(client)
        assert [client] == ran
    else:
        with pytest.raises(gk.ActionCancelled, match="were changed"):
            act(client)
        assert [] == ran


def test_an_attribute_further_in_identifies_an_argument(client):
    act, ran = gated(make_grace(reviewer=ScriptedReviewer("proceed")), floor="confirm", identity={"it": "account.id"})
    assert ("done", [client]) == (act(client), ran)


@pytest.mark.parametrize(
    ("identifier", "problem"),
    [
        ("nothing", "identity= failed with AttributeError"),
        (lambda client: 1 / 0, "identity= failed with ZeroDivisionError"),
        (lambda client: client.connection, "sqlite3.Connection"),
    ],
)
def test_what_identifies_an_argument_must_be_there_and_checkable(identifier, problem, client):
    reviewer = ScriptedReviewer()
    act, ran = gated(make_grace(unmeasured="notify", reviewer=reviewer), floor="confirm", identity={"it": identifier})
    with pytest.raises(gk.ActionCancelled, match=f"argument 'it' .*{problem}"):
        act(client)
    assert (0, []) == (reviewer.asked, ran)


def bank(grace, **options):
    class Bank:
        def __init__(self, account="a1"):
            self.account = account
            self.ticks = 0
            self.records = [0] * 600_000
            self.connection = iter(())

        @grace.gate(floor="confirm", **options)
        def pay(self, euros):
            return f"{self.account} {euros}"

        @grace.gate(floor="confirm", **options)
        async def pay_async(self, euros):
            return f"{self.account} {euros}"

    return Bank()


@both
def test_a_method_s_own_object_is_no_argument(is_async):
    """What ticks, is large or cannot be looked into inside of it costs nothing and cancels nothing."""

    def reviewer(request):
        owner.ticks += 1
        return R("proceed")

    owner = bank(make_grace(unmeasured="notify", reviewer=reviewer))
    assert "a1 5" == (asyncio.run(owner.pay_async(5)) if is_async else owner.pay(5))
    assert 1 == owner.ticks


@both
@pytest.mark.parametrize("identity", ["account", lambda owner: owner.account, {"self": "account"}])
def test_the_user_names_what_identifies_a_method_s_own_object(is_async, identity):
    def reviewer(request):
        owner.ticks += 1
        if 2 == owner.ticks:
            owner.account = "eve"
        return R("proceed")

    owner = bank(make_grace(unmeasured="notify", reviewer=reviewer), identity=identity)

    def call():
        return asyncio.run(owner.pay_async(5)) if is_async else owner.pay(5)

    assert "a1 5" == call()
    with pytest.raises(gk.ActionCancelled, match="were changed"):
        call()


class Teller:
    def __init__(self):
        self.account = "a1"
        self.paid = []

    def pay(self, euros):
        self.paid.append(euros)
        return euros

    def __call__(self, euros):
        return self.pay(euros)


@pytest.mark.parametrize("of", [lambda teller: teller.pay, lambda teller: teller])
@pytest.mark.parametrize("identity", [None, "account", {"self": lambda teller: teller.account}])
def test_bound_methods_and_callable_objects(of, identity):
    teller = Teller()

    def reviewer(request):
        teller.account = "eve"
        return R("proceed")

    act = make_grace(unmeasured="notify", reviewer=reviewer).gate(of(teller), name="pay")
    identified = make_grace(unmeasured="notify", reviewer=reviewer).gate(
        floor="confirm", name="pay", identity=identity
    )(of(teller))
    assert 5 == act(5)
    if identity is None:
        assert 5 == identified(5)
    else:
        with pytest.raises(gk.ActionCancelled, match="were changed"):
            identified(5)


@pytest.mark.parametrize(
    ("identity", "problem"),
    [
        ("account", "a method's own object, and .*plain has none; use a mapping"),
        ({"other": "a"}, "names 'other', and .*plain has no such parameter; it has it"),
        ({"self": "a"}, "names 'self'"),
        ({"it": 5}, "identity of 'it' must be the name of an attribute or a callable, not 5"),
        ({"it": "not a name"}, "not 'not a name'"),
        ({"it": "a..b"}, "not 'a..b'"),
    ],
)
def test_an_identity_that_cannot_be_used_is_an_error_at_once(identity, problem):

    def plain(it): ...

    with pytest.raises(gk.GateError, match=problem):
        make_grace(unmeasured="notify").gate(identity=identity)(plain)


def test_default_values_are_checked():
    ran = []

    def reviewer(request):
        request.arguments["lines"].append(2)
        return R("proceed")

    def act(lines=[1]):  # noqa: B006
        ran.append(lines)

    with pytest.raises(gk.ActionCancelled, match="were changed"):
        make_grace(reviewer=reviewer).gate(floor="confirm")(act)()
    assert [] == ran


def test_a_call_with_plain_defaults_has_the_digest_of_its_arguments():
    reviewer = ScriptedReviewer("proceed")

    @make_grace(unmeasured="notify", reviewer=reviewer).gate(floor="confirm")
    def act(it, number=1, text="a", flag=True, ratio=0.5, nothing=None, raw=b""): ...

    act("ana")
    assert digest_of({"it": "ana"}) == reviewer.requests[0].digest


def test_a_default_that_is_not_known_is_left_out():
    """As for the tools of frameworks, whose defaults belong to their schema."""
    signature = inspect.Signature([inspect.Parameter("it", inspect.Parameter.KEYWORD_ONLY, default=Unknown)])
    assert digest_of({}) == Coverage(None, signature, None).digest({})
