"""What `grace-kp doctor` says of requests for approval."""

from __future__ import annotations

import json

from grace_kp.approvals import Actor, Delivery, RequestStore, Webhook
from grace_kp.store import open_store
from tests.approvals.receivers import SECRET
from tests.cli.approvals import filed
from tests.cli.test_doctor import doctor, report


def test_what_waits_for_people(tmp_path):
    """Requests by what they wait for, where the chain stands, and what became of notifications."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    first, _ = filed(url, "A-1", "A-2")
    store = open_store(url)
    hook = Webhook(url="http://127.0.0.1:9/secret-path", secret=SECRET)
    Delivery(store.approvals, hook, after=0).close(0.5)
    RequestStore(store.approvals).approve(first.id, actor=Actor(name="ana"))
    head = store.approvals.head()
    store.close()
    found, code = report(GRACE_KP_STORE=url)
    approvals = found["store"]["approvals"]
    assert (0, 1, 1, 0) == (code, *(approvals[name] for name in ("pending", "approved", "unknown")))
    assert {"seq": head[0], "hash": head[1]} == approvals["chain"]
    receiver = approvals["receivers"][0]
    assert ("http://127.0.0.1:9", 0, 0, "ConnectError", 3) == tuple(
        receiver[name] for name in ("receiver", "delivered", "lost", "problem", "behind")
    )
    shown = doctor(GRACE_KP_STORE=url).stdout
    assert "1 pending, 1 approved and not started" in shown
    assert "last problem: ConnectError" in shown
    assert "secret-path" not in shown + json.dumps(found)
