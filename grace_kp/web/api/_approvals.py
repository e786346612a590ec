"""Operations on approvals: lists, one approval, its audit trail, the verbs with their bodies, and standing approvals."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from grace_kp.approvals import Approval, export
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, EditRefused, UnknownApproval
from grace_kp.gating import approval_alarms
from grace_kp.web._errors import ApiProblem, problem_of
from grace_kp.web._parameter import UNSTATED, Parameters, Text, Time
from grace_kp.web._site import Right, perform, perform_several
from grace_kp.web.api._document import IDS, LEFT_OUT, ApprovalList, Entries, Outcomes, StandingList
from grace_kp.web.api._operation import ApiOperation, Body, invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.approvals import RequestStore
    from grace_kp.web.api._operation import ApiCall

DIGEST = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


Digest = Annotated[str, Field(min_length=1, max_length=200, description="Digest of the arguments that were shown.")]
Words = Annotated[
    str, Field(max_length=10_000, description="Stored with the decision. Recognised secrets are removed.")
]
Unseen = Annotated[bool, Field(description="Consent although the JSON of the approval does not show some arguments.")]


class VerbBody(Body):
    """A body of a verb on an approval."""

    def arguments(self) -> dict[str, Any]:
        """Return the fields as the arguments of `perform`."""
        fields = self.model_dump(exclude_unset=True, exclude={"unseen"})
        return {"words" if name in {"note", "reason"} else name: value for name, value in fields.items()}


class Approve(VerbBody):
    """Consent to the arguments that were shown."""

    digest: Digest
    note: Words = ""
    unseen: Unseen = False


class NewArguments(VerbBody):
    """New arguments, and consent to the result."""

    digest: Digest
    changes: Annotated[dict[str, Any], Field(min_length=1, max_length=1_000)]
    """New values by parameter name, encoded as in `arguments` of the approval."""
    note: Words = ""
    unseen: Unseen = False


class Reject(VerbBody):
    """Refuse the action."""

    reason: Words = ""
    digest: Digest | None = None


class Respond(VerbBody):
    """Answer with instructions for the agent; the action does not run."""

    words: Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"[^\s\x00-\x1f\x85]")]
    """The instructions."""
    digest: Digest | None = None


class Pass(VerbBody):
    """Let the agent continue without the action, or have the gate assess the call again."""

    note: Words = ""
    digest: Digest | None = None


class Withdraw(VerbBody):
    """Cancel a request, or a decision that has not been claimed."""

    reason: Words = ""


class Reconcile(VerbBody):
    """State whether an action whose outcome is unknown has happened."""

    revision: Annotated[int, Field(ge=1)]
    """The revision that was shown: the digest does not tell two executions of one action apart."""
    happened: bool
    note: Words = ""


class ShownApproval(Body):
    """An approval with the digest that was shown."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    digest: Digest


class Several(Body):
    """A verb on several approvals, each named with what was shown of it. Those with unseen arguments are approved alone."""

    verb: Literal["approve", "reject", "respond", "skip", "retry", "withdraw"]
    approvals: Annotated[list[ShownApproval], Field(min_length=1, max_length=200)]
    note: Words = ""
    """The note, the reason, or the words to the agent."""


class ListParameters(Parameters):
    """Conditions on approvals, and the place of the page."""

    state: Literal["pending", "past"] = "pending"
    """Approvals that wait for a decision, or all others."""
    action: Text = Field(UNSTATED, examples=["refund"])
    """Name of the action, or a glob such as `refund.*`."""
    group: Text = UNSTATED
    """Only approvals that members of this group may decide."""
    by: Text = UNSTATED
    """Only what this person decided, voted for or closed."""
    since: Time = Field(UNSTATED, examples=["7d"])
    """Only what changed at or after this time."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    """Approvals of the page."""
    offset: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Leave out this many first."""


class EntryParameters(Parameters):
    """The place of a page of the audit trail."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 100
    """Entries of the page."""
    after: Annotated[int, Field(ge=0, le=2**53)] = 0
    """Number of the entry to go on after."""


class StandingParameters(Parameters):
    """Which standing approvals to list."""

    ended: bool = False
    """Include ended ones."""


def list_approvals(call: ApiCall) -> dict[str, Any]:
    """Return pending approvals by deadline and level, or the others by last change."""
    values = dict(call.values)
    state, limit, offset = values.pop("state"), values["limit"], values["offset"]
    values["limit"] = limit + 1
    other = ("by", "since") if state == "pending" else ("group",)
    problems = {name: f"is not a condition of the list state={state}" for name in other if name in values}
    if problems:
        raise invalid("parameter", problems)
    if "since" in values:
        values["since"] = datetime.fromisoformat(values["since"]).timestamp()
    read = call.site.requests.pending if state == "pending" else call.site.requests.history
    found = read(**values)
    return {
        "approvals": [list_entry_of(each) for each in found[:limit]],
        "next": offset + limit if len(found) > limit else None,
    }


def get_approval(call: ApiCall) -> dict[str, Any]:
    """Return an approval; the audit trail records who has seen it."""
    approval = call.site.requests.get(call.id, by=None if call.request.method == "HEAD" else call.person.actor)
    document, alarms = approval.to_dict(), approval_alarms(approval)
    return {**document, "facts": {**document["facts"], "alarm_sentences": alarms}} if alarms else document


def list_entries(call: ApiCall) -> dict[str, Any]:
    limit = call.values["limit"]
    call.site.requests.get(call.id)  # raises if there is none
    lines = export(call.site.tables, after=call.values["after"], approval=call.id, with_contents=False)
    found = [{"entry": line["entry"], "hash": line["hash"]} for line in islice(lines, limit + 1)]
    last = found[limit - 1]["entry"] if len(found) > limit else None
    return {"entries": found[:limit], "next": last["seq"] if isinstance(last, dict) else None}


def list_standing(call: ApiCall) -> dict[str, Any]:
    return {"standing": [asdict(each) for each in call.site.requests.standing(ended=call.values["ended"])]}


def decide_several(call: ApiCall) -> dict[str, Any]:
    body: Several = call.body
    shown = {each.id: each.digest for each in body.approvals}
    if any(shown[each.id] != each.digest for each in body.approvals):
        raise invalid("field", {"approvals": "must not name an approval with two digests"})
    consented = shown if body.verb == "approve" else ()
    problems = {each: found for each in consented if (found := _find_unseen(call.site.requests, each))}
    seen = {each: digest for each, digest in shown.items() if each not in problems}
    outcomes = perform_several(call.request, body.verb, seen, words=body.note)
    return {"outcomes": [_outcome(each, problems.get(each) or outcomes[each]) for each in shown]}


def decide(verb: str) -> Callable[[ApiCall], dict[str, Any]]:
    def answer(call: ApiCall) -> dict[str, Any]:
        body: VerbBody = call.body
        is_blind = isinstance(body, Approve | NewArguments) and not body.unseen
        if is_blind and (problem := _find_unseen(call.site.requests, call.id)):
            raise problem
        try:
            if isinstance(body, Reconcile):
                return call.site.requests.reconcile(call.id, by=call.person.actor, **body.model_dump()).to_dict()
            return perform(call.site.requests, verb, call.id, actor=call.person.actor, **body.arguments()).to_dict()
        except (AlreadyDecided, ChangedSinceShown, EditRefused) as error:
            raise problem_of(error, more={"approval": _brief(call.site.requests, call.id)}) from None

    return answer


def list_entry_of(approval: Approval) -> dict[str, Any]:
    return {name: value for name, value in approval.to_dict().items() if name not in LEFT_OUT}


def _outcome(approval_id: str, outcome: Approval | ApprovalError | ApiProblem) -> dict[str, Any]:
    if isinstance(outcome, Approval):
        return {"id": approval_id, "ok": True, "approval": list_entry_of(outcome)}
    problem = outcome if isinstance(outcome, ApiProblem) else problem_of(outcome)
    return {"id": approval_id, "ok": False, "code": problem.code, "message": problem.message}


def _find_unseen(requests: RequestStore, approval_id: str) -> ApiProblem | None:
    """Return the problem of a plain consent if the JSON of the approval does not show every argument."""
    try:
        approval = requests.get(approval_id)
    except UnknownApproval:
        return None
    hidden = ", ".join([*approval.sealed, *approval.unencoded])
    if not hidden or approval.state != "pending":
        return None
    message = f"the API does not show {hidden}; to consent unseen, state `unseen: true`, for one approval at a time"
    return ApiProblem("unseen", message, more={"approval": _brief(requests, approval_id)})


def _brief(requests: RequestStore, approval_id: str) -> dict[str, Any]:
    approval = requests.get(approval_id)
    return {name: getattr(approval, name) for name in ("id", "state", "revision", "digest")}


def _verb(
    verb: str, body: type[VerbBody], summary: str, example: dict[str, Any], *problems: str, description: str = ""
) -> ApiOperation:
    return ApiOperation(
        f"{verb}Approval",
        f"/api/v1/approvals/{{id}}/{verb}",
        Right.DECIDE,
        summary,
        decide(verb),
        Approval,
        ("unknown_approval", "not_entitled", "already_decided", *problems),
        method="POST",
        description=description,
        body=body,
        example=example,
    )


_CHANGED = "changed_since_shown"
OPERATIONS = (
    ApiOperation(
        "listApprovals", "/api/v1/approvals", Right.SEE, "List approvals", list_approvals, ApprovalList,
        parameters=ListParameters,
        description="Pending ones by deadline and level; past ones by last change, newest first. `group` restricts the pending ones, `by` and "
        "`since` the past ones.",
    ),
    ApiOperation(
        "getApproval", "/api/v1/approvals/{id}", Right.SEE, "Get an approval", get_approval, Approval, ("unknown_approval",),
        description="The audit trail records, once per account and revision, that it was seen; also for accounts with the role `agent`.",
    ),
    ApiOperation(
        "listApprovalHistory", "/api/v1/approvals/{id}/history", Right.SEE, "List the audit trail of an approval",
        list_entries, Entries, ("unknown_approval",), parameters=EntryParameters,
        description="Entries hold no arguments and no notes, only commitments to them.",
    ),
    _verb("approve", Approve, "Consent to an action", {"digest": DIGEST, "note": "checked the order"}, _CHANGED, "unseen",
          description="With a quorum, this is one vote."),
    _verb("edit", NewArguments, "Replace arguments and consent to the result", {"digest": DIGEST, "changes": {"euros": 20}}, _CHANGED, "unseen", "edit_refused",
          description="Votes for other arguments are dropped; the edit counts as a vote."),
    _verb("reject", Reject, "Refuse an action", {"reason": "already refunded"}, _CHANGED),
    _verb("respond", Respond, "Answer the agent with instructions", {"words": "Ask the customer first."}, _CHANGED),
    _verb("skip", Pass, "Let the agent continue without the action", {"note": "not needed"}, _CHANGED),
    _verb("retry", Pass, "Have the gate assess the call again", {"note": "the search works again"}, _CHANGED),
    _verb("withdraw", Withdraw, "Cancel a request, or a decision that has not been claimed", {"reason": "obsolete"}),
    _verb("reconcile", Reconcile, "State whether an action with an unknown outcome has happened", {"revision": 4, "happened": True}, _CHANGED),
    ApiOperation(
        "decideApprovals", "/api/v1/approvals/decide", Right.DECIDE, "Carry out a verb on several approvals",
        decide_several, Outcomes, method="POST", body=Several,
        example={"verb": "approve", "approvals": [{"id": IDS["approvals"], "digest": DIGEST}]},
        description="Each is a separate transaction: some may succeed while others do not. `withdraw` does not compare the digests.",
    ),
    ApiOperation(
        "listStanding", "/api/v1/standing", Right.SEE, "List standing approvals", list_standing, StandingList,
        parameters=StandingParameters,
    ),
)  # fmt: skip
"""The operations on approvals."""
