"""A worker that is killed while a refund waits for a person: the decision survives, and the next worker pays, once.

python examples/refund_worker.py              starts the workers, kills the first one, and decides as a person would
python examples/refund_worker.py FOLDER WAIT  is one worker: it goes through the jobs and ends
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grace_kp as gk

JOBS = [("A-17", 40), ("B-4", 900)]


def opened(folder: Path, *, blocks: bool = False) -> gk.Grace:
    """Open the store that workers and reviewers share."""
    reviewer = gk.InboxReviewer(deadline="4h", wait=True if blocks else "raise")
    return gk.Grace(store=f"sqlite:///{folder / 'app.db'}", reviewer=reviewer, evaluator=None, embedder=None)


def pay(folder: Path, invoice: str, euros: int, key: str) -> str:
    """Stand for a payment service: it pays once per idempotency key, and gives the same receipt again."""
    ledger = folder / "bank.json"
    paid: dict[str, str] = json.loads(ledger.read_text()) if ledger.exists() else {}
    paid.setdefault(key, f"receipt {len(paid) + 1}: {euros} euros for {invoice}")
    ledger.write_text(json.dumps(paid))
    return paid[key]


def work(folder: Path, *, blocks: bool) -> None:
    grace = opened(folder, blocks=blocks)

    @grace.gate(key="refund:{invoice}", floor="confirm")
    def refund(invoice: str, euros: int) -> str:
        return pay(folder, invoice, euros, gk.idempotency_key())

    for invoice, euros in JOBS:
        try:
            with grace.run(f"refund {invoice}"):
                print(f"  {invoice}: {refund(invoice, euros)}", flush=True)
        except gk.ActionPending:
            print(f"  {invoice}: waits for a person, and stays in the queue", flush=True)
    grace.close()


def start(folder: Path, wait: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, __file__, str(folder), wait], text=True)


def decide(people: gk.Grace, by: str) -> None:
    for approval in people.approvals.pending(action="refund"):
        waits = "a process waits" if approval.is_awaited else "no process waits"
        print(f"{by} approves {approval.action} {dict(approval.arguments)}; {waits}", flush=True)
        people.approvals.approve(approval.id, by=by, digest=approval.digest)


def main(folder: Path) -> None:
    people = opened(folder)
    print("the first worker blocks:", flush=True)
    first = start(folder, "block")
    while not people.approvals.pending(action="refund"):
        time.sleep(0.05)
    first.kill()  # SIGKILL, as when its machine is taken away
    first.wait()
    print("  killed while it waits", flush=True)
    decide(people, by="ana")

    for number in ("second", "third"):
        print(f"the {number} worker:", flush=True)
        start(folder, "raise").wait()
        decide(people, by="ana")

    print("the last worker gets the same jobs again:", flush=True)
    start(folder, "raise").wait()
    print("the bank paid:", sorted(json.loads((folder / "bank.json").read_text()).values()))
    people.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(Path(sys.argv[1]), blocks=sys.argv[2] == "block")
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
