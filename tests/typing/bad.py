"""Mistakes that a type checker must find through the decorators. Never run; each marked line has exactly the error named."""

from __future__ import annotations

import grace_kp as gk

grace = gk.Grace(store="memory:")


@grace.agent(domain="finance")
def analyst(ticker: str, *, depth: int = 1) -> str:
    return ticker * depth


@grace.tool
async def fetch(url: str) -> bytes:
    return url.encode()


@gk.tool
def add(a: int, b: int) -> int:
    return a + b


@grace.gate(floor="confirm")
def pay(customer: str, euros: int) -> str:
    return f"{customer} {euros}"


@gk.gate
async def wire(euros: int) -> int:
    return euros


class Desk:
    @grace.tool
    def look_up(self, customer: str) -> int:
        return len(customer)


def work(item: int) -> str:
    return str(item)


analyst(3)  # error: arg-type
analyst("ACME", 2)  # error: call-arg
analyst("ACME", width=2)  # error: call-arg
add(1)  # error: call-arg
add("1", 2)  # error: arg-type
total: str = add(1, 2)  # error: assignment
Desk().look_up(3)  # error: arg-type
gk.propagate(work)("1")  # error: arg-type
pay("Ana", "5")  # error: arg-type
pay("Ana", 5).upper()  # error: union-attr
grace.tool(kind="nonsense")  # error: call-overload
grace.agent(domian="code")  # error: call-overload
gk.InterventionResponse(acton="proceed")  # error: call-arg
gk.ConfidenceFactors(search_result_count="three")  # error: arg-type


async def later() -> None:
    await fetch(3)  # error: arg-type
    fetch("x").upper()  # error: attr-defined
    amount: int = await wire(5)  # error: assignment
    print(amount)
    await wire("5")  # error: arg-type
