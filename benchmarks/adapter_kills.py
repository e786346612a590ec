"""What becomes of an approved call when the process of an agent is killed between decision, claim, effect and report: once, or said to be unknown.

A framework's driver is named by the module of its test, which has to be importable: `tests.integrations.strands.test_kit:Driver`. Each kill is three
processes: one asks, one goes on after the approval, another one goes on after that. Half of the kills are at the places that the kit names, half
at any moment of either process. It exits with 1 if anything happened that must not happen.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from _measure import machine, print_table  # noqa: E402

from tests.integrations.scenario import EARLY, LATE, Driver, Kill, driver_of, lines  # noqa: E402


def seconds_of(driver: Driver, folder: Path) -> tuple[float, float]:
    """Return what an agent takes until it has asked, and when it goes on, so that moments are spread over that."""
    spent = []
    for number in range(4):
        at = folder / f"undisturbed-{number}"
        at.mkdir()
        Kill(driver, at, "")
        spent.append(lines(at / "seconds.jsonl")[:2])
    asking, going_on = zip(*spent[1:], strict=True)  # the first one imports the framework
    return statistics.median(asking), statistics.median(going_on)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("driver", help="MODULE:CLASS")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where problems are kept (default: a new temporary folder)")
    arguments = parser.parse_args()
    if not Path("/proc/self").exists():
        sys.exit("needs Linux: whether a process is gone is read from /proc")
    driver, chance = driver_of(arguments.driver), random.Random(arguments.seed)
    kept = arguments.folder or Path(tempfile.mkdtemp(prefix="adapter-kills-"))
    kept.mkdir(parents=True, exist_ok=True)
    asking, going_on = seconds_of(driver, kept)
    struck, unknown, effects, problems = Counter[str](), Counter[str](), Counter[str](), 0
    for number in range(arguments.kills):
        folder = kept / f"kill-{number}"
        folder.mkdir()
        early = None
        if number % 2:
            place = name = (*EARLY, *LATE)[number // 2 % (len(EARLY) + len(LATE))]
        else:
            early = bool(number % 4)
            name = f"any moment, {'asking' if early else 'going on'}"
            place = f"{chance.uniform(0.0001, 1.2 * (asking if early else going_on)):.6f}"
        try:
            kill = Kill(driver, folder, place, early=early)
        except AssertionError as failed:  # a program ended with an exception
            problems += 1
            print(f"{folder.name}, {name}: {failed}", file=sys.stderr)
            continue
        struck[name] += kill.struck
        unknown[name] += kill.state == "unknown"
        effects[name] += kill.effects
        if kill.problems:
            problems += 1
            print(f"{folder.name}, {name}: {'; '.join(kill.problems)}", file=sys.stderr)
        else:
            shutil.rmtree(folder)
    for folder in kept.glob("undisturbed-*"):
        shutil.rmtree(folder)
    rows = [(name, struck[name], effects[name], unknown[name]) for name in struck]
    print(f"{machine()}, {driver.framework}")
    heads = ("killed", "processes killed", "effects", "unknown, and said so")
    print_table(f"{arguments.kills} conversations, {problems} problems", heads, rows)
    if not problems and arguments.folder is None:
        kept.rmdir()
    sys.exit(problems > 0)


if __name__ == "__main__":
    main()
