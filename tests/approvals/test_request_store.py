"""The requests as a whole: the states, and two processes at one store that do whatever they like while a simple model says what is expected."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from grace_kp.approvals import ENTITLING, FOLLOWING, RESPONSES, ApprovalState, verify
from grace_kp.errors import ApprovalError, KeyReused
from grace_kp.levels import InterventionAction
from tests.approvals.shops import ANA, BO, CY, GATE, SAME, Shop, asked, claim, keyed

PEOPLE = (ANA, BO, CY)
CLOSED = {"reject": "rejected", "respond": "responded", "skip": "skipped", "retry": "retried"}
STANDS = {"pending", "approved", "edited", "claimed", "unknown", "done"}


def test_a_bulk_decision_names_each_request():
    """What cannot be decided is an error beside the others, and each is a transaction of its own."""
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
    """What is expected of one request."""

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

    def chosen(self, data):
        approval_id = data.draw(st.sampled_from(list(self.models)))
        self.due(self.models[approval_id])
        return approval_id, self.models[approval_id]

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

    @precondition(lambda self: self.models)
    @rule(process=st.sampled_from("ab"), person=st.sampled_from(PEOPLE), is_stale=st.booleans(), data=st.data())
    def approve(self, process, person, is_stale, data):
        approval_id, model = self.chosen(data)
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

    @precondition(lambda self: self.models)
    @rule(process=st.sampled_from("ab"), person=st.sampled_from(PEOPLE), euros=st.integers(1, 3), data=st.data())
    def edit(self, process, person, euros, data):
        approval_id, model = self.chosen(data)
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

    @precondition(lambda self: self.models)
    @rule(
        process=st.sampled_from("ab"),
        person=st.sampled_from(PEOPLE),
        verb=st.sampled_from(sorted(CLOSED)),
        data=st.data(),
    )
    def close(self, process, person, verb, data):
        approval_id, model = self.chosen(data)
        repeats = model.state == CLOSED[verb] and model.closer == person.name
        call = getattr(self.stores[process], verb)
        words = ("no",) if verb == "respond" else ()
        self.attempt(model.state == "pending" or repeats, lambda: call(approval_id, *words, by=person))
        if model.state == "pending":
            self.move(model, CLOSED[verb])
            model.closer = person.name

    @precondition(lambda self: self.models)
    @rule(process=st.sampled_from("ab"), person=st.sampled_from(PEOPLE), data=st.data())
    def withdraw(self, process, person, data):
        approval_id, model = self.chosen(data)
        repeats = model.state == "cancelled" and model.closer == person.name
        can = model.state == "pending" or model.state in ENTITLING
        self.attempt(can or repeats, lambda: self.stores[process].withdraw(approval_id, by=person))
        if can:
            self.move(model, "cancelled")
            model.closer = person.name

    @precondition(lambda self: self.models)
    @rule(process=st.sampled_from("ab"), is_other=st.booleans(), data=st.data())
    def claim(self, process, is_other, data):
        approval_id, model = self.chosen(data)
        digest = "sha256:00" if is_other else model.digest
        claimed = self.attempt(
            model.state in ENTITLING and not is_other,
            lambda: self.stores[process].claim(approval_id, digest=digest, version="1", policy=SAME, by=GATE),
        )
        if claimed:
            model.token, model.claimant = claimed.token, self.processes[process]
            self.move(model, "claimed")

    @precondition(lambda self: self.models)
    @rule(
        process=st.sampled_from("ab"),
        state=st.sampled_from(["done", "failed", "unknown"]),
        has_token=st.booleans(),
        data=st.data(),
    )
    def settle(self, process, state, has_token, data):
        approval_id = data.draw(st.sampled_from(list(self.models)))
        model = self.models[approval_id]  # a report needs no observation first: its claimant is alive
        token = model.token if has_token else "wrong"
        after = self.attempt(
            bool(model.token) and has_token, lambda: self.stores[process].settle(approval_id, token, state=state)
        )
        if after is None:
            return
        if model.state == "claimed" or (model.state == "unknown" and state != "unknown"):
            self.move(model, state)
        assert model.state == after.state

    @precondition(lambda self: self.models)
    @rule(process=st.sampled_from("ab"), data=st.data())
    def release(self, process, data):
        approval_id = data.draw(st.sampled_from(list(self.models)))
        model = self.models[approval_id]
        can = model.state == "claimed"
        self.attempt(can, lambda: self.stores[process].release(approval_id, model.token))
        if can:
            self.move(model, "approved")
            model.token = ""

    @precondition(lambda self: self.models)
    @rule(process=st.sampled_from("ab"), happened=st.booleans(), person=st.sampled_from(PEOPLE), data=st.data())
    def reconcile(self, process, happened, person, data):
        approval_id, model = self.chosen(data)
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

    @precondition(lambda self: self.models)
    @rule(process=st.sampled_from("ab"), data=st.data())
    def approve_and_claim(self, process, data):
        approval_id, model = self.chosen(data)
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


@pytest.mark.parametrize("state", S)
def test_only_a_decision_in_favour_is_claimed_and_only_a_claim_ends_in_an_outcome(state):
    assert (S.CLAIMED in FOLLOWING[state]) == (state in ENTITLING)
    assert (S.DONE in FOLLOWING[state]) == (state in {S.CLAIMED, S.UNKNOWN})


def test_every_decision_of_a_person_is_a_response():
    assert set(RESPONSES.values()) == set(InterventionAction)
    assert set(RESPONSES) < FOLLOWING[S.PENDING]
