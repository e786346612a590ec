"""How long `import grace_kp` takes, and a program up to its first recorded call, in fresh interpreters with warm files.

Milliseconds are measured inside of each interpreter, so its own start is not in them. Which heavy modules each stage loads is
told by `sys.modules`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from typing import Any

from _measure import flags, machine, print_table

HEAVY = (
    "pydantic", "numpy", "asyncio", "rich", "typer", "sqlite3", "tenacity", "platformdirs", "opentelemetry", "google", "torch",
)  # fmt: skip

STAGES = {
    "import asyncio (for comparison)": "import asyncio",
    "import opentelemetry.sdk.trace (for comparison)": "import opentelemetry.sdk.trace",
    "import grace_kp": "import grace_kp",
    "… and decorate with a Grace": """
import grace_kp as gk
grace = gk.Grace(store="memory:")
@grace.tool
def tool(text): return text
@grace.agent
def agent(text): return tool(text)
""",
    "… and the first recorded call": """
import grace_kp as gk
grace = gk.Grace(store="memory:")
@grace.tool
def tool(text): return text
@grace.agent
def agent(text):
    tool(text)
    here.append(set(sys.modules))
    return text
here = []
agent("first")
""",
    "… and that run scored and stored": """
import grace_kp as gk
grace = gk.Grace(store="memory:")
@grace.tool
def tool(text): return text
@grace.agent
def agent(text): return tool(text)
agent("first")
assert grace.flush()
""",
}

AROUND = """
import sys, json, time
start = time.perf_counter()
{code}
spent = time.perf_counter() - start
loaded = globals()["here"][0] if "here" in globals() else set(sys.modules)
print(json.dumps([spent * 1000, sorted(loaded)]))
import os; sys.stdout.flush(); os._exit(0)
"""


def once(code: str) -> tuple[float, set[str]]:
    """Milliseconds of the code in a fresh interpreter, and what it loaded."""
    ran = subprocess.run([*flags(), "-c", AROUND.format(code=code)], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip().splitlines()[-1])
    spent, loaded = json.loads(ran.stdout)
    return spent, set(loaded)


def main(arguments: list[str] | None = None) -> None:
    """One table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(arguments)
    seen: dict[str, list[float]] = {}
    loaded: dict[str, set[str]] = {}
    for number in range(given.rounds + 1):
        for name, code in STAGES.items():
            try:
                spent, loaded[name] = once(code)
            except RuntimeError as problem:
                if number == 0:
                    print(f"left out: {name}: {problem}")
                continue
            if number:  # the first round warms the files
                seen.setdefault(name, []).append(spent)
    rows: list[tuple[Any, ...]] = [
        (name, statistics.median(times), min(times), ", ".join(m for m in HEAVY if m in loaded[name]) or "none")
        for name, times in seen.items()
    ]
    print(f"\n## Importing\n\n{machine()}")
    print_table(f"median of {given.rounds} fresh interpreters", ("stage", "ms", "fastest", "heavy modules"), rows)


if __name__ == "__main__":
    main()
