"""A support agent that pays small refunds by itself, asks a person for larger ones, and can never pay out everything."""

import grace_kp as gk


def manager(request: gk.InterventionRequest) -> gk.InterventionResponse:
    """Plays a person; leave `reviewer=` out and the console asks you instead."""
    euros = request.arguments.get("euros", 0)
    print(
        f"  manager is asked: {request.action}({dict(request.arguments)}) at confidence {request.decision.confidence_score}"
    )
    if euros > 500:
        return gk.InterventionResponse("modify", modified={"euros": 500}, reviewer="manager")
    return gk.InterventionResponse("proceed", reviewer="manager")


grace = gk.Grace(store="memory:", reviewer=manager, policies={"refund_large": "confirm", "empty_*": "deny"})


@grace.gate(unmeasured="notify")  # nothing measures such a run, and a small refund needs no question
@grace.tool
def refund_small(customer: str, euros: int) -> str:
    return f"paid {euros} to {customer}"


@grace.gate
@grace.tool
def refund_large(customer: str, euros: int) -> str:
    return f"paid {euros} to {customer}"


@grace.gate
@grace.tool
def empty_account(customer: str) -> str:
    return f"everything to {customer}"


@grace.agent(domain="customer_service")
def clerk(wish: str, euros: int) -> str:
    if "everything" in wish:
        return str(empty_account("Ana"))
    return str(refund_small("Ana", euros) if euros < 50 else refund_large("Ana", euros))


def main() -> None:
    for wish, euros in (
        ("a coffee back", 4),
        ("my flight back", 300),
        ("my holidays back", 4_000),
        ("everything back", 0),
    ):
        try:
            print(f"{wish}: {clerk(wish, euros)}")
        except gk.ActionDenied as denied:
            print(f"{wish}: {denied}")
    print()
    for trace in reversed(grace.store.query()):
        for decision in (trace.grace or {}).get("decisions", []):
            print(f"{decision['action']:<14} {decision['level']:<9} {decision['score']:<6} {decision['outcome']}")


if __name__ == "__main__":
    main()
