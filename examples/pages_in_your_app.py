"""The pages of grace_kp inside an application that has logins of its own: people decide there, and a quorum counts their authenticated names.

A client that runs in this process plays the browsers of ana and carl and a dashboard. `grace-kp serve` offers the same pages
without an application of your own.
"""

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.testclient import TestClient

import grace_kp as gk
from grace_kp.web import Person, Role, app

SHOP = "https://shop.example.com"
STAFF = {
    "token-of-ana": Person(name="ana", role=Role.APPROVER),
    "token-of-carl": Person(name="carl", role=Role.APPROVER),
    "token-of-dashboard": Person(name="dashboard", role=Role.VIEWER),
}

grace = gk.Grace(
    store="memory:",
    reviewer=gk.InboxReviewer(deadline="2d", wait="hand_over", quorum=2),
    evaluator=None,
    embedder=None,
)


@grace.gate(key="refund:{invoice}", floor="confirm")
@grace.tool
def refund(invoice: str, euros: int) -> str:
    return f"paid back {euros} euros for {invoice}"


@grace.agent(domain="customer_service")
def support(question: str) -> str:
    return str(refund("A-17", 400))


def who_is(request: Request) -> Person | None:
    """Your own logins: here, a token in the header. A cookie of your application works, too."""
    return STAFF.get(request.headers.get("authorization", "").removeprefix("Bearer "))


def client_of(shop: Starlette, token: str) -> TestClient:
    return TestClient(shop, base_url=SHOP, headers={"Authorization": f"Bearer {token}"})


def decide(name: str, client: TestClient, verb: str, request: dict[str, Any]) -> None:
    """Name the digest of what was seen, so that no decision covers anything else."""
    answer = client.post(f"/trust/api/v1/approvals/{request['id']}/{verb}", json={"digest": request["digest"]})
    body = answer.json()
    print(f"{name}: {answer.status_code}, {body.get('code') or body['state']}")


def main() -> None:
    pages = app(grace, auth=who_is, public_url=SHOP)
    shop = Starlette(routes=[Mount("/trust", app=pages)])
    ana, carl, dashboard = (client_of(shop, f"token-of-{name}") for name in ("ana", "carl", "dashboard"))

    support("I was charged twice for A-17.")
    page = ana.get("/trust/inbox").text
    print("the inbox shows the request:", "refund" in page and "A-17" in page)
    print("a stranger gets", TestClient(shop, base_url=SHOP).get("/trust/inbox").status_code)

    (waiting,) = dashboard.get("/trust/api/v1/approvals").json()["approvals"]
    print(f"{waiting['action']} {waiting['arguments']}")
    decide("dashboard", dashboard, "approve", waiting)  # a viewer sees, and decides nothing
    decide("ana", ana, "approve", waiting)
    decide("ana", ana, "approve", waiting)  # one person is one vote
    decide("carl", carl, "approve", waiting)

    print(grace.approvals.execute(waiting["id"]))
    (ended,) = dashboard.get("/trust/api/v1/approvals", params={"state": "past"}).json()["approvals"]
    print(f"{ended['state']}, decided by {', '.join(vote['actor']['name'] for vote in ended['votes'])}")
    grace.close()


if __name__ == "__main__":
    main()
