"""The requests as a whole: their states, transactions that leave nothing half-written, time, and two processes at one store beside a model."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from grace_kp.approvals import ENTITLING, FOLLOWING, RESPONSES, Actor, ApprovalState, RequestStore, verify
from grace_kp.errors import AlreadyDecided, ApprovalError, KeyReused, NotEntitled, StoreError
from grace_kp.levels import InterventionAction
from tests.approvals.shops import ANA, BO, CY, GATE, SAME, ProcessTables, Shop, asked, claim, keyed

PEOPLE = (ANA, BO, CY)
CLOSED = {"reject": "rejected", "respond": "responded", "skip": "skipped", "retry": "retried"}
STANDS = {"pending", "approved", "edited", "claimed", "unknown", "done"}


def test_a_bulk_decision_names_each_request():
    shop = Shop()
    first, second = shop.requests.file(asked()), shop.requests.file(asked())
    shop.requests.reject(first.id, by=BO)
    ids = [first.id, second.id, "nope", second.id]
    outcomes = shop.requests.decide_all(ids, "approve", by=ANA, digests={second.id: second.digest})
    assert [first.id, second.id, "nope"] == list(outcomes)
    assert ["AlreadyDecided", "Approval", "UnknownApproval"] == [type(each).__name__ for each in outcomes.values()]
    with pytest.raises(ApprovalError, match="must be one of approve, reject"):
        shop.requests.decide_all(ids, "edit", by=ANA)


def test_a_view_is_recorded_once_per_person_and_revision():
    shop = Shop()
    approval = shop.requests.file(asked())
    for _ in range(3):
        for person in (ANA, BO):
            shop.requests.get(approval.id, by=person)
    shop.requests.approve(approval.id, by=ANA)
    shop.requests.get(approval.id, by=BO)
    views = [(each["actor"]["name"], each["revision"]) for each in shop.entries() if each["kind"] == "viewed"]
    assert [("ana", 1), ("bo", 1), ("bo", 2)] == views


@pytest.mark.parametrize("place", ["memory:", "sqlite"])
def test_many_claimants_of_one_approval(place, tmp_path):
    shop = Shop(f"sqlite:///{tmp_path / 'a.db'}" if place == "sqlite" else place)
    for _ in range(10):
        approval = shop.requests.approve(shop.requests.file(asked()).id, by=ANA)
        tokens, start = [], threading.Barrier(4)

        def run(approval=approval, tokens=tokens, start=start):
            requests = shop.another(threading.current_thread().name)
            start.wait()
            with contextlib.suppress(ApprovalError):
                tokens.append(claim(requests, approval).token)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 == len(tokens)
    assert verify(shop.tables, at=shop.clock.now).ok
    shop.store.close()


@dataclass
class Model:
    key: str
    digest: str
    asked_digest: str
    quorum: int
    deadline: float
    runs: set
    changed: float
    state: str = "pending"
    on_deadline: str = "cancel"
    use_by: float = 0.0
    votes: set = field(default_factory=set)
    closer: str = ""
    claimant: str = ""
    token: str = ""
    reconciled: bool = False


def on_a_request(*, is_observed=True, **strategies):
    """Make a rule of a verb: it gets the requests of a process, a request, its model, and what is drawn."""

    def rule_of(verb):
        def run(self, process, data, **drawn):
            approval_id = data.draw(st.sampled_from(list(self.models)))
            model = self.models[approval_id]
            if is_observed:
                self.due(model)
            verb(self, process, approval_id, model, **drawn)

        run.__name__ = verb.__name__
        made = rule(process=st.sampled_from("ab"), data=st.data(), **strategies)(run)
        return precondition(lambda self: self.models)(made)

    return rule_of


class Processes(RuleBasedStateMachine):
    """Verbs in any order, by any process and person, while the clock jumps and processes die."""

    def __init__(self):
        super().__init__()
        self.shop = Shop()
        self.processes = {"a": "a1", "b": "b1"}
        self.stores = {name: self.shop.another(process) for name, process in self.processes.items()}
        self.models = {}

    def due(self, model):
        """Apply to a model what an observer writes."""
        now = max(self.shop.clock.now, model.changed)
        after = model.state
        if model.state == "pending" and model.deadline <= now:
            after = "skipped" if model.on_deadline == "skip" else "expired"
        elif model.state in ENTITLING and model.use_by <= now:
            after = "expired"
        elif model.state == "claimed" and self.shop.alive[model.claimant] is False:
            after = "unknown"
        if after != model.state:
            model.closer = "" if after != "unknown" else model.closer
            self.move(model, after)

    def move(self, model, state=None):
        assert state is None or ApprovalState(state) in FOLLOWING[ApprovalState(model.state)]
        model.state = state or model.state
        model.changed = max(self.shop.clock.now, model.changed)

    def attempt(self, expected, call, errors=ApprovalError):
        """Call a verb that must succeed, or must be refused with one of our errors."""
        if expected:
            return call()
        with pytest.raises(errors):
            call()
        return None

    @rule(
        process=st.sampled_from("ab"),
        invoice=st.sampled_from(["R-1", "R-2"]),
        euros=st.sampled_from([5, 50]),
        quorum=st.sampled_from([1, 1, 2]),
        on_deadline=st.sampled_from(["cancel", "skip"]),
        run=st.sampled_from(["run-1", "run-2"]),
    )
    def request(self, process, invoice, euros, quorum, on_deadline, run):
        new = keyed(
            {"invoice": invoice, "euros": euros},
            quorum=quorum,
            identity="stated",
            run_id=run,
            on_deadline=on_deadline,
            waits="hand_over",
        )
        for model in self.models.values():
            if model.key == invoice:
                self.due(model)
        of_key = {name: model for name, model in self.models.items() if model.key == invoice}
        standing = [name for name, model in of_key.items() if model.state in STANDS]
        assert len(standing) <= 1
        if standing and of_key[standing[0]].asked_digest != new.digest:
            with pytest.raises(KeyReused):
                self.stores[process].file(new)
            return
        approval = self.stores[process].file(new)
        if standing:
            assert standing == [approval.id]
            joined = of_key[standing[0]]
            if ApprovalState(joined.state).is_open and run not in joined.runs:
                joined.runs.add(run)
                self.move(joined)
        elif approval.id in of_key:
            old = of_key[approval.id]
            assert old.state in {"rejected", "responded", "skipped"}
            assert old.state != "responded" or old.asked_digest == new.digest
        else:
            assert "pending" == approval.state
            now = self.shop.clock.now
            self.models[approval.id] = Model(
                invoice, new.digest, new.digest, quorum, now + 3_600, {run}, now, on_deadline=on_deadline
            )

    @on_a_request(person=st.sampled_from(PEOPLE), is_stale=st.booleans())
    def approve(self, process, approval_id, model, person, is_stale):
        digest = model.asked_digest if is_stale else model.digest
        is_current = digest == model.digest
        taken = {"approved", "edited", "claimed", "done", "failed", "unknown", "not_done", "pending"}
        repeats = person.name in model.votes and model.state in taken
        votes = model.state == "pending" and person.name not in model.votes
        self.attempt(
            is_current and (repeats or votes),
            lambda: self.stores[process].approve(approval_id, by=person, digest=digest),
        )
        if is_current and votes:
            self.vote(model, person)

    def vote(self, model, person):
        model.votes.add(person.name)
        if len(model.votes) < model.quorum:
            return self.move(model)
        self.move(model, "approved" if model.digest == model.asked_digest else "edited")
        model.use_by = model.changed + 600
        model.closer = person.name
        return None

    @on_a_request(person=st.sampled_from(PEOPLE), euros=st.integers(1, 3))
    def edit(self, process, approval_id, model, person, euros):
        new = asked({"invoice": model.key, "euros": euros}).digest
        before = self.stores[process].get(approval_id)
        try:
            edited = self.stores[process].edit(approval_id, {"euros": euros}, by=person, digest=model.digest)
        except ApprovalError:
            assert model.state != "pending" or new == model.digest
            return
        if edited == before:  # it repeats what this person has edited
            assert person.name in model.votes
            assert new == model.digest
            return
        assert "pending" == model.state
        model.digest, model.votes = new, set()
        self.vote(model, person)

    @on_a_request(person=st.sampled_from(PEOPLE), verb=st.sampled_from(sorted(CLOSED)))
    def close(self, process, approval_id, model, person, verb):
        repeats = model.state == CLOSED[verb] and model.closer == person.name
        call = getattr(self.stores[process], verb)
        words = ("no",) if verb == "respond" else ()
        self.attempt(model.state == "pending" or repeats, lambda: call(approval_id, *words, by=person))
        if model.state == "pending":
            self.move(model, CLOSED[verb])
            model.closer = person.name

    @on_a_request(person=st.sampled_from(PEOPLE))
    def withdraw(self, process, approval_id, model, person):
        repeats = model.state == "cancelled" and model.closer == person.name
        can = model.state == "pending" or model.state in ENTITLING
        self.attempt(can or repeats, lambda: self.stores[process].withdraw(approval_id, by=person))
        if can:
            self.move(model, "cancelled")
            model.closer = person.name

    @on_a_request(is_other=st.booleans())
    def claim(self, process, approval_id, model, is_other):
        digest = "sha256:00" if is_other else model.digest
        claimed = self.attempt(
            model.state in ENTITLING and not is_other,
            lambda: self.stores[process].claim(approval_id, digest=digest, version="1", policy=SAME, by=GATE),
        )
        if claimed:
            model.token, model.claimant = claimed.token, self.processes[process]
            self.move(model, "claimed")

    @on_a_request(is_observed=False, state=st.sampled_from(["done", "failed", "unknown"]), has_token=st.booleans())
    def settle(self, process, approval_id, model, state, has_token):
        # A report needs no observation first: its claimant is alive.
        token = model.token if has_token else "wrong"
        after = self.attempt(
            bool(model.token) and has_token, lambda: self.stores[process].settle(approval_id, token, state=state)
        )
        if after is None:
            return
        if model.state == "claimed" or (model.state == "unknown" and state != "unknown"):
            self.move(model, state)
        assert model.state == after.state

    @on_a_request(is_observed=False)
    def release(self, process, approval_id, model):
        can = model.state == "claimed"
        self.attempt(can, lambda: self.stores[process].release(approval_id, model.token))
        if can:
            self.move(model, "approved")
            model.token = ""

    @on_a_request(happened=st.booleans(), person=st.sampled_from(PEOPLE))
    def reconcile(self, process, approval_id, model, happened, person):
        state = "done" if happened else "not_done"
        runs = bool(model.claimant) and self.shop.alive[model.claimant] is True
        lost = bool(model.claimant) and self.shop.alive[model.claimant] is None
        repeats = model.reconciled and model.state == state and model.closer == person.name
        can = (model.state == "unknown" and (happened or not runs)) or (model.state == "claimed" and lost)
        self.attempt(can or repeats, lambda: self.stores[process].reconcile(approval_id, by=person, happened=happened))
        if can:
            if model.state == "claimed":
                self.move(model, "unknown")
            self.move(model, state)
            model.reconciled, model.closer = True, person.name

    @on_a_request()
    def approve_and_claim(self, process, approval_id, model):
        self.stores[process].get(approval_id)
        for person in PEOPLE:
            if model.state == "pending" and person.name not in model.votes:
                self.stores[process].approve(approval_id, by=person, digest=model.digest)
                self.vote(model, person)
        if model.state in ENTITLING:
            model.token = claim(self.stores[process], self.stores[process].get(approval_id)).token
            model.claimant = self.processes[process]
            self.move(model, "claimed")

    @rule(seconds=st.sampled_from([1, 1, 1, 300, 700, 4_000, 86_400, -86_400]))
    def turn_the_clock(self, seconds):
        self.shop.clock.now += seconds

    @rule(name=st.sampled_from("ab"), fate=st.sampled_from([False, None]))
    def die_and_start_again(self, name, fate):
        process = self.processes[name]
        self.shop.alive[process] = fate
        self.processes[name] = f"{name}{int(process[1:]) + 1}"
        self.stores[name] = self.shop.another(self.processes[name])

    @rule(process=st.sampled_from("ab"))
    def sweep(self, process):
        self.stores[process].sweep()
        for model in self.models.values():
            self.due(model)

    @invariant()
    def rows_are_as_the_model_says(self):
        for approval_id, model in self.models.items():
            row = self.shop.tables.row(approval_id)
            assert (model.state, model.digest) == (row.state, row.digest)
            model.changed = row.changed  # also an entry without another state, such as a late report, has a time

    @invariant()
    def every_claim_has_consent_and_is_the_only_one(self):
        states = {}
        for entry in self.shop.entries():
            approval_id, kind, facts = entry["approval"], entry["kind"], entry["facts"]
            votes, running, settled = states.setdefault(approval_id, ({}, [False], [False]))
            if kind in {"voted", "edited", "decided"} and facts["verb"] in {"approve", "edit"}:
                votes.setdefault(facts["digest"], set()).add(entry["actor"]["name"])
            elif kind == "claimed":
                assert not running[0]
                assert not settled[0]
                assert len(votes.get(facts["digest"], ())) >= self.models[approval_id].quorum
                running[0] = True
            elif kind == "released":
                running[0] = False
            elif kind == "settled":
                assert running[0]
                settled[0] = True

    def teardown(self):
        assert verify(self.shop.tables, at=self.shop.clock.now).ok
        self.shop.store.close()


TestRequests = Processes.TestCase
TestRequests.settings = settings(stateful_step_count=40, phases=(Phase.explicit, Phase.generate))


def test_pending_requests_are_paged_and_filtered():
    shop = Shop(groups={"ana": ["finance"]})
    ids = [
        shop.requests.file(asked({"n": n}, level="escalate" if n % 2 else "confirm", groups=("finance",) if n < 3 else ())).id
        for n in range(6)
    ]  # fmt: skip
    everything = [approval.id for approval in shop.requests.pending()]
    assert sorted(ids) == sorted(everything)
    assert everything[2:4] == [approval.id for approval in shop.requests.pending(limit=2, offset=2)]
    strict = [approval.id for approval in shop.requests.pending(level="escalate")]
    assert [ids[1], ids[3], ids[5]] == strict
    assert strict[1:] == [approval.id for approval in shop.requests.pending(level="escalate", limit=5, offset=1)]
    assert sorted(ids[3:]) == sorted(approval.id for approval in shop.requests.pending(decider=BO))
    assert sorted(ids[3:]) == sorted(approval.id for approval in shop.requests.pending("ref*", group="board"))
    assert [] == shop.requests.pending("refund.*")
    shop.requests.approve(ids[0], by=ANA)
    assert sorted(ids[1:]) == sorted(approval.id for approval in shop.requests.pending(decider=ANA))


S = ApprovalState
FINAL = {S.REJECTED, S.RESPONDED, S.SKIPPED, S.RETRIED, S.EXPIRED, S.CANCELLED, S.DONE, S.FAILED, S.NOT_DONE}


def test_every_state_is_in_the_table_and_in_the_drawing():
    import grace_kp.approvals._request as states

    assert set(FOLLOWING) == set(S)
    assert FINAL == {state for state in S if not FOLLOWING[state]}
    assert [] == [state for state in S if state.value not in (states.__doc__ or "")]
    # Only a decision in favour is claimed, only a claim ends in an outcome, and every decision of a person is a response.
    assert ENTITLING == {state for state in S if S.CLAIMED in FOLLOWING[state]}
    assert {S.CLAIMED, S.UNKNOWN} == {state for state in S if S.DONE in FOLLOWING[state]}
    assert set(InterventionAction) == set(RESPONSES.values())
    assert set(RESPONSES) < FOLLOWING[S.PENDING]


class Failing(ProcessTables):
    fails_at = 0

    def transaction(self):
        return _Failing(self)


class _Failing:
    def __init__(self, tables):
        self._tables = tables
        self._block = tables._tables.transaction()

    def __enter__(self):
        self._writes, self._count = self._block.__enter__(), 0
        return self

    def __exit__(self, *error):
        return self._block.__exit__(*error)

    def __getattr__(self, name):
        call = getattr(self._writes, name)
        if name not in {"put", "append", "put_document"}:
            return call

        def write(*arguments):
            self._count += 1
            if self._count == self._tables.fails_at:
                raise StoreError("the disk is full")
            return call(*arguments)

        return write


class Refusing(ProcessTables):
    @contextlib.contextmanager
    def transaction(self):
        with self._tables.transaction() as writes, pytest.MonkeyPatch.context() as patched:
            patched.setattr(writes, "put", lambda _row: False)
            yield writes


@pytest.mark.parametrize("fails_at", [1, 2])
@pytest.mark.parametrize("verb", ["approve", "edit", "reject", "withdraw", "claim"])
def test_a_write_that_fails_leaves_nothing(verb, fails_at):
    shop = Shop()
    tables = Failing(shop.tables, "p1", shop.alive)
    requests = RequestStore(tables, clock=shop.clock)
    approval = requests.file(asked())
    if verb == "claim":
        approval = requests.approve(approval.id, by=ANA)
    calls = {
        "approve": lambda: requests.approve(approval.id, by=ANA),
        "edit": lambda: requests.edit(approval.id, {"euros": 1}, by=ANA),
        "reject": lambda: requests.reject(approval.id, by=ANA),
        "withdraw": lambda: requests.withdraw(approval.id, by=ANA),
        "claim": lambda: claim(requests, approval),
    }
    before = shop.tables.row(approval.id), shop.tables.head()
    tables.fails_at = fails_at
    with pytest.raises(StoreError, match="the disk is full"):
        calls[verb]()
    assert before == (shop.tables.row(approval.id), shop.tables.head())
    tables.fails_at = 0
    calls[verb]()


def test_a_row_that_another_process_has_written_is_not_overwritten():
    """Which a transaction excludes; a store may fail to."""
    shop = Shop()
    approval = shop.requests.file(asked())
    before = shop.tables.row(approval.id), shop.tables.head()
    requests = RequestStore(Refusing(shop.tables, "p1", shop.alive), clock=shop.clock)
    with pytest.raises(StoreError, match=f"{approval.id} was changed by another process"):
        requests.approve(approval.id, by=ANA)
    assert before == (shop.tables.row(approval.id), shop.tables.head())


def test_each_commit_of_a_change_is_reported_also_where_the_verb_fails():
    heads, shop = [], Shop()
    requests = shop.another("p1", on_commit=lambda: heads.append(shop.tables.head()[0]))
    approval = requests.file(asked())
    requests.get(approval.id)
    shop.clock.now += 10_000
    with pytest.raises(AlreadyDecided):
        requests.approve(approval.id, by=ANA)
    assert [1, 2] == heads


DAY = 86_400.0


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"], "bo": ["board"]})


@pytest.mark.parametrize("read", ["get", "pending", "history", "sweep"])
def test_every_read_writes_what_is_due(shop, read):
    approval = shop.requests.file(asked())
    shop.clock.now = approval.deadline
    {
        "get": lambda: shop.requests.get(approval.id),
        "pending": shop.requests.pending,
        "history": shop.requests.history,
        "sweep": shop.requests.sweep,
    }[read]()
    assert ["requested", "expired"] == shop.kinds(approval.id)
    assert [] == shop.requests.pending()
    ended = shop.requests.get(approval.id)
    assert ("expired", "deadline") == (ended.state, ended.decision.actor.name)


def test_a_clock_one_day_ahead_and_back_revives_nothing(shop):
    pending, approved = shop.requests.file(asked()), shop.requests.file(asked())
    approved = shop.requests.approve(approved.id, by=ANA)
    shop.clock.now += DAY
    assert 2 == shop.requests.sweep()
    shop.clock.now -= DAY
    for call in (lambda: shop.requests.approve(pending.id, by=BO), lambda: claim(shop.requests, approved)):
        with pytest.raises(AlreadyDecided, match="expired"):
            call()


def test_changes_of_a_request_are_in_the_order_of_their_times(shop):
    approval = shop.requests.file(asked(deadline_seconds=None, use_within_seconds=None))
    shop.clock.now -= DAY
    decided = shop.requests.approve(approval.id, by=ANA)
    assert approval.created_at == decided.decision.at


def test_on_deadline_skip_lets_the_agent_go_on(shop):
    approval = shop.requests.file(asked(on_deadline="skip"))
    shop.clock.now += DAY
    ended = shop.requests.get(approval.id)
    assert ("skipped", "no decision in time") == (ended.state, ended.decision.note)
    with pytest.raises(AlreadyDecided) as caught:
        shop.requests.skip(approval.id, by=ANA)
    assert "" == caught.value.by


def test_a_request_is_escalated_once(shop):
    approval = shop.requests.file(asked(groups=("finance",), on_deadline="escalate:board", quorum=2, identity="stated"))
    shop.requests.approve(approval.id, by=ANA)
    shop.clock.now += 2 * 3_600
    now = shop.requests.get(approval.id)
    assert ("pending", ("board",), (), shop.clock.now + 3_600) == (now.state, now.groups, now.votes, now.deadline)
    with pytest.raises(NotEntitled):
        shop.requests.approve(approval.id, by=ANA)
    assert "pending" == shop.requests.approve(approval.id, by=BO).state
    shop.clock.now += 3_600
    assert "expired" == shop.requests.get(approval.id).state
    assert ["requested", "voted", "escalated", "voted", "expired"] == shop.kinds()


def test_many_due_requests_are_swept(shop):
    for _ in range(230):
        shop.requests.file(asked())
    shop.clock.now += DAY
    assert 230 == shop.requests.sweep()
    assert 0 == shop.requests.sweep()


def test_requests_without_a_deadline_wait(shop):
    approval = shop.requests.file(asked(deadline_seconds=None, use_within_seconds=None))
    shop.clock.now += 1_000 * DAY
    assert "claimed" == claim(shop.requests, shop.requests.approve(approval.id, by=ANA)).approval.state


def test_every_entry_states_the_row_that_was_written_with_it():
    shop = Shop()
    requests = shop.requests
    approval = requests.file(keyed())
    requests.get(approval.id, by=ANA)
    requests.leave(approval.id)
    shop.another("p2").file(keyed())
    approval = requests.edit(approval.id, {"euros": 20}, by=BO, digest=approval.digest)
    token = claim(requests, approval).token
    requests.settle(approval.id, token, state="failed", error="OSError")
    requests.reject(requests.file(keyed()).id, by=Actor(name="\ud800\u202e\x1b"), reason="\x00")
    found = verify(shop.tables, at=shop.clock.now)
    assert (True, [], 7) == (found.ok, list(found.problems), found.entries)


def test_waiting_is_no_revision():
    shop = Shop()
    approval = shop.requests.file(keyed())
    shop.requests.leave(approval.id)
    assert (False, 1) == (shop.requests.get(approval.id).is_awaited, shop.requests.get(approval.id).revision)
    assert shop.another("p2").file(keyed()).is_awaited is True
    shop.requests.leave(approval.id)
    assert (True, 1) == (shop.requests.get(approval.id).is_awaited, shop.requests.get(approval.id).revision)
    shop.requests.withdraw(approval.id, by=ANA)
    assert {} == shop.tables.documents("waiter")
    assert shop.requests.get(approval.id).is_awaited is False
