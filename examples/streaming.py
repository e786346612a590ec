"""An async agent that streams its answer, with parallel tools, a nested agent, and a timeout of its own."""

import asyncio
from collections.abc import AsyncIterator

import grace_kp as gk

grace = gk.Grace(store="memory:")


@grace.tool
async def fetch(part: str) -> str:
    await asyncio.sleep(0.01 * len(part))
    return part.upper()


@grace.agent
async def summarise(texts: list[str]) -> str:
    await asyncio.sleep(0)
    return " + ".join(texts)


@grace.agent(objective="Write about {topic}")
async def writer(topic: str) -> AsyncIterator[str]:
    parts = await asyncio.gather(fetch("head"), fetch("body"), fetch("tail"))
    yield f"{topic}: "
    try:
        async with asyncio.timeout(0.05):
            await fetch("a very long appendix")
    except TimeoutError:
        grace.thought("no appendix then")
    yield await summarise(list(parts))


async def main() -> None:
    with grace.collect() as traces:
        async for piece in writer("bees"):
            print(piece, end="", flush=True)
    print("\n")
    for trace in traces:
        print(trace.task.objective, "|", trace.outcome.result_summary, "|", (trace.grace or {})["status"])
        for step in trace.steps:
            what = step.tool.name if step.tool else ""
            print(
                f"{step.step_id:>3} {step.type:<15} {what:<10} {step.latency_ms or ''!s:>8} {step.input or step.content}"
            )


if __name__ == "__main__":
    asyncio.run(main())
