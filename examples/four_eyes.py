"""Four eyes on a deletion: two members of a group must agree, and neither of them may be the person the agent works for.

Names are only stated here, as in every script: whoever can write the store could state any. Where that is not enough, people log in to a server
that alone has the store, and `identity="stated"` goes.
"""

import grace_kp as gk

grace = gk.Grace(
    store="memory:",
    reviewers={"ana": ["owners"], "carl": ["owners"], "eve": ["owners"], "bob": ["support"]},
    reviewer=gk.InboxReviewer(deadline="2d", wait="hand_over", group="owners", quorum=2, identity="stated"),
    evaluator=None,
    embedder=None,
)
customers = {"c-1": "Ann", "c-2": "Zed", "c-3": "Zed (duplicate)"}


@grace.gate(key="delete:{customer}", floor="confirm")
@grace.tool
def delete_customer(customer: str, keep_invoices: bool = True) -> str:
    name = customers.pop(customer)
    return f"deleted {name}, {'kept' if keep_invoices else 'without'} invoices"


@grace.agent(user="eve")
def housekeeper(wish: str) -> str:
    return str(delete_customer("c-3", keep_invoices=False))


def approve(approval_id: str, by: str) -> None:
    try:
        approval = grace.approvals.approve(approval_id, by=by)
    except gk.ApprovalError as refused:
        reason = str(refused).partition(approval_id)[2].lstrip(": ").partition(";")[0]
        print(f"{by}: {type(refused).__name__}: {reason}")
    else:
        print(f"{by}: approves, {len(approval.votes)} of {approval.quorum}; {approval.state}")


def main() -> None:
    print(housekeeper("delete the duplicate").partition(" waits ")[0])
    (waiting,) = grace.approvals.pending(group="owners")
    print(f"{waiting.action} {dict(waiting.arguments)} for {waiting.user}")

    approve(waiting.id, by="eve")  # the agent works for her
    approve(waiting.id, by="bob")  # of another group
    approve(waiting.id, by="ana")
    approve(waiting.id, by="ana")  # one person is one vote

    # Carl wants the invoices to be kept. That is another call, so the count begins again, with his vote.
    edited = grace.approvals.edit(waiting.id, {"keep_invoices": True}, by="carl", digest=waiting.digest)
    print(f"carl: edits, {len(edited.votes)} of {edited.quorum}; {edited.state}")
    approve(waiting.id, by="ana")  # she has not seen the edit, so this does not count
    seen = grace.approvals.get(waiting.id, by="ana")
    print(f"ana sees {dict(seen.arguments)}")
    approve(waiting.id, by="ana")

    print(grace.approvals.execute(waiting.id))
    print(grace.approvals.execute(waiting.id), "(the recorded result)")
    print("left:", sorted(customers.values()))
    print("the audit trail:", [change["entry"]["kind"] for change in grace.approvals.export()])


if __name__ == "__main__":
    main()
