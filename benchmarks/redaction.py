"""What redaction costs: megabytes per second with google-re2 and without it, and how the time grows on hostile texts.

The texts are synthetic messages of agents; `--texts FILE` takes a JSON list of texts, or recorded runs as JSON lines (gzip or not),
of which the messages are used. `--fuzz N` generates N texts from the patterns of every rule and checks that neither scan leaves out
a rule that matches, in the text alone and between others.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _measure import machine, median_seconds, print_table
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from grace_kp.trace import redact_text
from grace_kp.trace.redaction import _scan
from grace_kp.trace.redaction._identifiers import IDENTIFIERS

if TYPE_CHECKING:
    from collections.abc import Iterator

PROSE = (
    "the agent looked at three offers and chose second because it was cheaper than others in city token password key value session result "
    "search found documents answer question error retry user order status confirmed total price night hotel flight"
)
HOSTILE = [
    "AKIA", "AKIAIOSFODNN7EXAMPLE", "sk-", "eyJ", "password=", 'password="', "token=\\\\'", "docker -p ", "curl -u a", "0-", "a@", "a:", "::",
    "-----BEGIN PRIVATE KEY-----", "kind: Secret\n", "authorization: ", "http://a:", "clave", "form-data; name=\"password\"",
]  # fmt: skip


def messages(number: int) -> list[str]:
    """Prose, JSON and code of different lengths, mostly short, with a secret or an identifier in one of forty."""
    chance, words_of_prose = random.Random(1), PROSE.split()
    texts = []
    for index in range(number):
        words = " ".join(chance.choice(words_of_prose) for _ in range(chance.choice((6, 15, 30, 60, 250))))
        if index % 3 == 1:
            words = json.dumps({"text": words, "score": chance.random(), "id": chance.getrandbits(64), "tokens": 512})
        if index % 3 == 2:
            words = f"def step(state):\n    # {words}\n    return state.get('items', [])[:10]\n"
        if index % 40 == 0:
            words += f' password = "Xk9{chance.getrandbits(40):x}" mail ana{index}@example.com'
        texts.append(words)
    return texts


def recorded(path: Path) -> list[str]:
    """The texts of a file."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        first = file.read(1)
        file.seek(0)
        if first == "[":
            return [text for text in json.load(file) if isinstance(text, str)]
        return [text for line in file for text in contents(json.loads(line))]


def contents(run: dict[str, Any]) -> Iterator[str]:
    """The contents of the messages of one run."""
    for message in run.get("messages") or run.get("traj") or ():
        if isinstance(message.get("content"), str):
            yield message["content"]


def scans(identifiers: bool) -> dict[str, Any]:
    """The scans of this installation by name."""
    found = {"google-re2": _scan.compiled_scan(identifiers), "pure Python": _scan.pure_scan(identifiers)}
    return {name: scan for name, scan in found.items() if scan is not None}


def throughput(texts: list[str]) -> list[tuple[str, float, float]]:
    """Megabytes (UTF-8) per second of processor time: secrets, and secrets with identifiers."""
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    rows = []
    for name in scans(False):
        figures = []
        for identifiers in (False, True):
            _scan._SCANS[identifiers] = scans(identifiers)[name]
            fastest = min(processor_seconds(texts, identifiers) for _ in range(4))
            figures.append(megabytes / fastest)
        rows.append((name, figures[0], figures[1]))
    return rows


def processor_seconds(texts: list[str], identifiers: bool) -> float:
    start = time.process_time()
    for text in texts:
        redact_text(text, identifiers=identifiers)
    return time.process_time() - start


def growth() -> list[tuple[str, float, float, float]]:
    """Milliseconds for 10 kB and 40 kB of a repeated beginning, the worst scan of the installation, and the ratio."""
    rows = []
    for piece in HOSTILE:
        worst = (0.0, 0.0)
        for scan in scans(True).values():
            _scan._SCANS[True] = scan
            small, large = (repeated_seconds(piece, size) for size in (10_000, 40_000))
            worst = max(worst, (large, small))
        rows.append((repr(piece), worst[1] * 1e3, worst[0] * 1e3, worst[0] / worst[1]))
    return sorted(rows, key=lambda row: -row[2])


def repeated_seconds(piece: str, size: int) -> float:
    text = piece * (size // len(piece))
    return median_seconds(lambda: redact_text(text, identifiers=True), rounds=3, at_least=0.01)


def fuzz(number: int) -> tuple[list[str], int]:
    """Rules that a scan left out although they match, and the number of texts that a rule matched."""
    wrong: list[str] = []
    matched = 0
    for rule in _scan.SECRETS + IDENTIFIERS:
        try:
            for text in generated(rule, number):
                if rule.sub(text, None) == text:
                    continue
                matched += 1
                joined = _scan.SEPARATOR.join((PROSE, text, PROSE))
                wrong += [
                    f"{name} leaves out {rule.vendor or rule.kind} in {shown!r}"
                    for name, scan in scans(True).items()
                    for shown in (text, joined)
                    if not any(found is rule for found in scan(shown))
                ]
        except Unsatisfiable:
            print(f"no texts for {rule.vendor or rule.kind}", file=sys.stderr)
    return wrong, matched


def generated(rule: Any, number: int) -> list[str]:
    """Texts that contain a match of the rule's pattern."""
    texts: list[str] = []

    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.from_regex(re.compile(rule.pattern, rule.flags)))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts


def main(arguments: list[str] | None = None) -> None:
    """Two tables, or the result of the fuzzing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="a JSON list of texts, or recorded runs as JSON lines")
    parser.add_argument("--limit", type=float, default=2.8, help="megabytes of texts (default 2.8)")
    parser.add_argument("--fuzz", type=int, metavar="N", help="texts per rule")
    options = parser.parse_args(arguments)
    if options.fuzz:
        wrong, matched = fuzz(options.fuzz)
        print("\n".join(wrong) or f"no scan leaves out a rule that matches, in {matched:,} texts")
        raise SystemExit(bool(wrong))
    print(machine())
    texts, size = [], 0.0
    for text in recorded(options.texts) if options.texts else messages(12_000):
        texts.append(text)
        size += len(text.encode()) / 1e6
        if size >= options.limit:
            break
    print_table(
        f"Throughput, {size:.1f} MB in {len(texts):,} texts",
        ("", "secrets, MB/s", "with identifiers, MB/s"),
        throughput(texts),
    )
    print_table("Hostile texts, the slower scan", ("repeated", "10 kB, ms", "40 kB, ms", "ratio"), growth())


if __name__ == "__main__":
    main()
