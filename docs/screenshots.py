"""Make the pictures of `docs/how-to/serve.md`: four weeks of an invented shop, served by `grace-kp serve` and looked at in a browser.

    make screenshots

The runs are drawn with a fixed seed and have fixed ids. Times are counted back from now, because the pages show how long ago things were.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

START = time.time()
DAYS = 28
clock = [START - DAYS * 86_400]
# Approvals read the clock of the system. It is set before the library is imported, which keeps a reference to it.
time.time = lambda: clock[0]

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import grace_kp as gk
from grace_kp.record import ModelCall, current_run
from grace_kp.testing import fixed_ids
from tests.browser.serving import Server, executable, flags

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGES = Path(__file__).parent / "images"
POLICIES = {
    "refund": "Refunds are paid within 5 working days after the parcel is back.",
    "return": "Goods can be returned unused within 30 days, with the label in the box.",
    "parcel": "A parcel that has not moved for 3 days is lost: send another one or pay it back.",
    "invoice": "Invoices are corrected within a day; the old one is cancelled.",
}
QUESTIONS = [
    ("When do I get my refund for order {order}?", "refund"),
    ("I want to return the lamp from order {order}.", "return"),
    ("The parcel with order {order} has not arrived.", "parcel"),
    ("The invoice for order {order} names the wrong company.", "invoice"),
    ("注文 {order} の返金はいつになりますか？", "refund"),
]
draw = random.Random(14)
taste = random.Random(14)  # judges are asked on another thread, which must not disturb the drawing of runs
ticks = [0]


def pass_time(seconds: float) -> None:
    """Let the clocks of runs and of approvals go on."""
    clock[0] += seconds
    ticks[0] += round(seconds * 1e9)


def think(text: str, *, seconds: float, prompt: int, completion: int) -> None:
    """Stand for a call of a model."""
    run, start = current_run(), ticks[0]
    pass_time(seconds)
    usage = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    assert run is not None
    run.model_called(ModelCall("claude-sonnet-5", start=start, end=ticks[0], text=text, usage=usage))


def judge(prompt: str) -> gk.JudgeReply:
    """Stand for a model that judges answers."""
    score = round(taste.betavariate(9, 2), 2)
    text = json.dumps({"score": score, "reason": "as in the policy", "coverage": score, "coverage_reason": "all of it"})
    return gk.JudgeReply(text, tokens_in=len(prompt) // 4, tokens_out=len(text) // 4, model="house-judge")


class Shop:
    """A support agent with tools, a nested clerk, and three actions that people are asked about."""

    def __init__(self, store: str) -> None:
        self.grace = grace = gk.Grace(
            store=store,
            domain="customer_service",
            reviewer=gk.InboxReviewer(deadline="8h", wait="raise"),
            evaluator=judge,
            judge_calls_per_minute=0,
            embedder=None,
            clock=lambda: ticks[0],
            wall_clock=lambda: round(clock[0] * 1e9),
            new_id=fixed_ids(),
        )

        @grace.retriever
        def search_policies(query: str) -> list[dict[str, object]]:
            pass_time(draw.uniform(0.1, 0.4))
            return [
                {
                    "text": text,
                    "source": f"{name}.md",
                    "score": round(draw.uniform(0.75, 0.97) if name in query else 0.3, 2),
                }
                for name, text in POLICIES.items()
                if name in query or draw.random() < 0.2
            ]

        @grace.tool
        def find_order(order: str) -> dict[str, object]:
            pass_time(draw.uniform(0.05, 0.9))
            if draw.random() < 0.12:
                raise TimeoutError("the shop did not answer within 1 s")
            return {"order": order, "customer": "Ana Lima", "item": "desk lamp, brass", "euros": draw.randint(9, 180)}

        @grace.gate(key="refund:{order}", floor="confirm")
        @grace.tool
        def refund(
            order: str,
            euros: float,
            reason: Literal["late", "damaged", "returned"] = "returned",
            to: Literal["bank", "card", "voucher"] = "bank",
            notify_customer: bool = True,
            message: str = "",
        ) -> str:
            pass_time(0.3)
            return f"paid back {euros} euros for {order}"

        @grace.gate(key="cancel:{order}", floor="confirm")
        @grace.tool
        def cancel_order(order: str, restock: bool = True) -> str:
            pass_time(0.2)
            return f"cancelled {order}"

        @grace.gate(key="mail:{order}", floor="escalate")
        @grace.tool
        def write_to_supplier(order: str, subject: str, text: str) -> str:
            pass_time(0.2)
            return "sent"

        @grace.agent(name="order_clerk")
        def clerk(order: str) -> dict[str, object]:
            grace.thought(f"The customer means order {order}.")
            try:
                return find_order(order)
            except TimeoutError:
                pass_time(1)
                return find_order(order)

        @grace.agent(name="support")
        def support(question: str, order: str, topic: str) -> str:
            grace.update(tags=[topic], user=draw.choice(["ana", "bo", "chi"]), session=f"chat-{order[-2:]}")
            think("Look up the policy, then the order.", seconds=draw.uniform(0.6, 1.5), prompt=640, completion=42)
            search_policies(f"{topic} {question}")
            found = clerk(order)
            think(
                POLICIES[topic],
                seconds=draw.uniform(0.9, 2.6),
                prompt=draw.randint(900, 1500),
                completion=draw.randint(60, 180),
            )
            if topic == "parcel":
                refund(
                    order,
                    float(str(found["euros"])),
                    reason="late",
                    message="We are sorry that your parcel was lost. You get the full price back.",
                )
            elif topic == "invoice" and draw.random() < 0.5:
                cancel_order(order)
            return POLICIES[topic]

        self.support, self.refund, self.supplier = support, refund, write_to_supplier

    def serve(self, number: int, question: int | None = None) -> None:
        """Answer one question."""
        words, topic = draw.choice(QUESTIONS) if question is None else QUESTIONS[question]
        order = f"B-{1000 + number}"
        with contextlib.suppress(gk.ActionPending, TimeoutError):
            self.support(words.format(order=order), order, topic)

    def decide(self) -> None:
        """Have people decide what has waited for a while, and carry it out."""
        approvals = self.grace.approvals
        for request in approvals.pending():
            pass_time(draw.uniform(60, 1_500))
            by = draw.choice(["ana", "bo"])
            match draw.choices(["approve", "edit", "reject", "respond"], [8, 2, 2, 1])[0]:
                case "edit" if "euros" in request.arguments:
                    approvals.edit(request.id, {"euros": 20.0}, by=by, note="a voucher was paid before")
                case "reject":
                    approvals.reject(request.id, by=by, reason="the parcel arrived yesterday")
                case "respond":
                    approvals.respond(request.id, "Ask for a photo of the damage first.", by=by)
                case _:
                    approvals.approve(request.id, by=by, note="checked with the carrier")
            # In its own run, as the next job of the queue.
            with contextlib.suppress(gk.ActionNotApproved), self.grace.run(f"Carry on with {request.action}"):
                {"refund": self.refund}.get(request.action, lambda **_: None)(**request.arguments)


def fill(store: str) -> tuple[str, str]:
    """Record four weeks of runs and decisions, and what waits now; return the ids of a run and of a pending request."""
    shop = Shop(store)
    number = 0
    for day in range(DAYS):
        clock[0] = START - (DAYS - day) * 86_400
        for _ in range(draw.randint(6, 14)):
            pass_time(draw.uniform(600, 3_600))
            shop.serve(number := number + 1)
            if number % 5 == 0:
                shop.decide()
    shop.decide()
    shop.grace.flush()
    for trace in shop.grace.store.query(limit=1_000):
        if draw.random() < 0.6:
            sure = trace.outcome.confidence or 0.5
            shop.grace.feedback(trace.id, draw.random() < 0.3 + 0.7 * sure, source="customer")
    clock[0] = START - 2_400
    for question in (2, 4, 2, 3, 3, 0, 2, 3, 1):
        pass_time(240)
        shop.serve(number := number + 1, question)
    with contextlib.suppress(gk.ActionPending), shop.grace.run("Order more brass lamps", user="chi"):
        shop.supplier(
            f"B-{1000 + number}", "Brass lamps", "Please send 40 more by Friday, at the price of the last order."
        )
    until = START + 12 * 3_600 - clock[0]
    shop.grace.approvals.grant(
        "refund",
        {
            "order": {"any": True},
            "euros": {"from": 0, "to": 15},
            "reason": {"in": ["late", "returned"]},
            "to": {"is": "voucher"},
            "notify_customer": {"is": True},
            "message": {"any": True},
        },
        until=until,
        uses=50,
        by="ana",
    )
    shop.grace.flush()
    request = next(each for each in shop.grace.approvals.pending() if each.action == "refund")
    shop.grace.close()
    assert request.run_id is not None
    return request.run_id, request.id


class Camera:
    """A browser in front of the pages."""

    def __init__(self, browser: Browser, origin: str, state: Any) -> None:
        self.browser, self.origin, self.state = browser, origin, state

    @contextlib.contextmanager
    def at(self, path: str, *, scheme: str = "light", width: int = 1_400, height: int = 900) -> Iterator[Page]:
        """Open a page in a window of its own."""
        context = self.browser.new_context(
            color_scheme=scheme,  # type: ignore[arg-type]
            viewport={"width": width, "height": height},
            storage_state=self.state,
            timezone_id="Asia/Tokyo",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(self.origin + path)
        yield page
        context.close()

    def take(self, name: str, path: str, **window: Any) -> None:
        """Take the picture of a page as it opens."""
        with self.at(path, **window) as page:
            save(name, page)


def save(name: str, page: Page) -> None:
    """Write a picture with 256 colours, which a page of text does not miss."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
    print(f"{name}.png  {(IMAGES / f'{name}.png').stat().st_size / 1_000:.0f} kB")


def take_all(camera: Camera, run: str, request: str) -> None:
    """Take the pictures of the tour."""
    camera.take("inbox", "/inbox")
    camera.take("approval", f"/approvals/{request}", height=1_100)
    camera.take("approval-phone", f"/approvals/{request}", scheme="dark", width=360, height=780)
    camera.take("runs", "/runs")
    camera.take("run", f"/runs/{run}", scheme="dark")
    camera.take("run-durations", f"/runs/{run}?view=waterfall", height=560)
    camera.take("figures", "/figures", height=1_100)


def main() -> None:
    """Make all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        os.environ["GRACE_KP_PRICES"] = "house-judge=0.30 USD"
        run, request = fill(server.store)
        address = server.start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable(), args=flags())
            page = browser.new_page()
            page.goto(address)
            page.get_by_role("button", name="Open the pages").click()
            page.wait_for_url(f"{server.origin}/inbox")
            while "indexed so far" in page.goto(f"{server.origin}/figures").text():
                page.wait_for_timeout(200)
            take_all(Camera(browser, server.origin, page.context.storage_state()), run, request)
            browser.close()
        server.kill()


if __name__ == "__main__":
    main()
