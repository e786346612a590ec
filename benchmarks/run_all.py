"""All benchmarks, one after the other; each in a process of its own, so that none warms or burdens the next."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from _measure import flags, machine

QUICK = {
    "importing": ("--rounds", "5"),
    "recording": ("--rounds", "9", "--sustained-rounds", "3", "--sustained-runs", "300"),
    "finishing": ("--rounds", "8"),
    "arguments": ("--rounds", "15"),
    "scoring": (),
    "redaction": ("--limit", "0.5"),
    "evaluating": ("--cases", "1000"),
    "monitoring": ("--streams", "500", "--labels", "500"),
    "action_confidence": ("alarms", "cost"),
    "calibration": ("own", "--only", "tau_bench", "--repeats", "1"),
    "judging": ("--runs", "100"),
    "langchain_handler": ("--rounds", "9", "--sustained-runs", "100"),
    "tail": ("--rounds", "1", "--seconds", "2", "--threads", "20", "--runs", "50", "--tasks", "1000"),
    "faults": ("kills", "writes", "--kills", "60", "--every", "10"),
    "approvals_faults": ("--quick",),
    "approvals_scale": ("--quick",),
    "storing": ("--traces", "2000", "--runs", "500", "--rounds", "3", "--steps", "100000"),
}


def main(arguments: list[str] | None = None) -> None:
    """Run them; the exit status says whether all went through."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones (default all): {', '.join(QUICK)}")
    parser.add_argument("--quick", action="store_true", help="shorter rounds: less exact, about a minute")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - set(QUICK)
    if unknown:
        parser.error(f"unknown benchmark {min(unknown)!r}; known are {', '.join(QUICK)}")
    print(f"# Benchmarks\n\n{machine()}{', quick' if given.quick else ''}", flush=True)
    failed = []
    for name in given.names or QUICK:
        script = Path(__file__).with_name(f"{name}.py")
        if subprocess.run([*flags(), str(script), *(QUICK[name] if given.quick else ())], check=False).returncode:
            failed.append(name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
