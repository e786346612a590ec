"""A refund agent that asks about everything, until its labelled runs show when it may pay by itself, and with which promise about errors."""

import random
import tempfile
from pathlib import Path

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.testing import FakeClock

# A clock that is always equally fast, so that the example prints the same figures each time; your own runs need none.
clock = FakeClock(tick_ns=1_000_000)
RISKS = {"silent": 0.05, "notify": 0.15}
asked = 0


def manager(request: gk.InterventionRequest) -> gk.InterventionResponse:
    """Plays a person, who lets everything pass; what was right is only known later."""
    global asked
    asked += 1
    return gk.InterventionResponse("proceed", reviewer="manager")


def serve(grace: gk.Grace, requests: range) -> list[bool]:
    """Run the agent on requests, state afterwards whether each refund was right, and return that."""

    @grace.tool
    def find_orders(customer: str, count: int, is_up: bool) -> str:
        if not is_up:
            raise TimeoutError("the shop does not answer")
        return ", ".join(f"order {place} of {customer}" for place in range(count))

    @grace.gate
    @grace.tool
    def refund(order: str) -> str:
        return f"refunded {order}"

    @grace.agent(name="refunds")
    def agent(request: str, count: int, is_up: bool) -> str:
        try:
            orders = find_orders(request, count, is_up)
        except TimeoutError:
            orders = find_orders(request, count, True)
        grace.thought("This is the order." if count == 1 else "Perhaps the newest of these orders is meant.")
        return str(refund(orders.split(", ")[0]))

    outcomes = []
    for number in requests:
        draw = random.Random(number)
        count, is_up = draw.choice([1, 1, 1, 2, 3]), draw.random() > 0.2
        # With several orders the agent guesses. A shop that did not answer at once does no harm. An audit tells later what was right.
        is_right = draw.random() > {1: 0.005, 2: 0.25, 3: 0.5}[count]
        with grace.collect() as traces:
            agent(f"Refund request {number}", count, is_up)
        grace.feedback(traces[0].id, is_right, source="test")
        outcomes.append(is_right)
    return outcomes


def report(name: str, outcomes: list[bool], grace: gk.Grace) -> None:
    labelled = cal.labels(grace)
    alone = [right for trace, right in zip(*labelled, strict=True) if trace.decisions[0].level in {"silent", "notify"}]
    print(
        f"{name}: {len(outcomes)} refunds, {outcomes.count(False)} wrong; {asked} asked about, {len(alone)} not, {alone.count(False)} of them wrong"
    )


def main() -> None:
    global asked
    folder = Path(tempfile.mkdtemp())

    # 1. Everything is asked, and every run is labelled.
    always_ask = gk.Thresholds(1.0, 1.0, 0.0)
    with gk.Grace(
        store="memory:", reviewer=manager, clock=clock.ns, wall_clock=clock.ns, thresholds=always_ask
    ) as grace:
        report("at first", serve(grace, range(600)), grace)
        labelled = cal.labels(grace)

    # 2. What the promise needs, and what the runs show.
    promise = cal.Promise(risks=RISKS)
    print("labels needed:", ", ".join(f"{level} {count}" for level, count in promise.needed.items()))
    found = cal.calibrate_runs(labelled, promise)
    for name, each in found.assessments.items():
        print(f"  {name:<14} AUROC {each.auroc:.2f}")
    for level in found.levels:
        begins = "never" if level.threshold is None else f"from {level.threshold:.2f}"
        print(
            f"  {level.level:<7} {begins}: {level.errors} of {level.reached} wrong, at most {level.risk:.0%} promised"
        )
    found.profile.save(folder / "profile.json")
    (folder / "report.html").write_text(cal.calibration_page(found), encoding="utf-8")

    # 3. The same gate, now with the profile: it asks only where the promise needs it.
    asked = 0
    with gk.Grace(
        store="memory:", reviewer=manager, clock=clock.ns, wall_clock=clock.ns, profile=str(folder / "profile.json")
    ) as grace:
        outcomes = serve(grace, range(600, 900))
        report("calibrated", outcomes, grace)
        for trace in grace.store.query(limit=1):
            print(f"{trace.decisions[0].level}: {trace.confidence.reason if trace.confidence else ''}")


if __name__ == "__main__":
    main()
