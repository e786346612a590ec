"""What redaction costs: megabytes per second, random-looking texts, memory, and how the time grows on hostile texts.

The texts are synthetic messages of agents; `--texts FILE` takes a JSON list of texts, or recorded runs as JSON lines (gzip or not),
of which the messages are used. `--fuzz N` generates N texts from the patterns of every rule and checks that the scan leaves out
no rule that matches, in the text alone and between others.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import random
import re
import statistics
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _measure import machine, print_table
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from grace_kp.trace import Redactor, redact_text
from grace_kp.trace.redaction import _scan
from grace_kp.trace.redaction._patterns import IDENTIFIERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def throughput(texts: list[str]) -> list[tuple[str, float]]:
    """Megabytes (UTF-8) per second of processor time, the fastest of four rounds that begin without memory."""
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    rows = []
    for name, identifiers in (("secrets", False), ("secrets and identifiers", True)):
        seconds = []
        for _ in range(4):
            _scan._SCANS.clear()
            seconds.append(processor_seconds(texts, identifiers))
        rows.append((name, megabytes / min(seconds)))
    return rows


def processor_seconds(texts: list[str], identifiers: bool) -> float:
    start = time.process_time()
    for text in texts:
        redact_text(text, identifiers=identifiers)
    return time.process_time() - start


def random_looking(chance: random.Random) -> dict[str, Callable[[int], str]]:
    """Texts of about so many characters, new each time."""
    return {
        "hex": lambda size: chance.randbytes(size // 2).hex(),
        "base64": lambda size: base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
        "base64 in lines": lambda size: base64.encodebytes(chance.randbytes(size * 3 // 4)).decode(),
        "UUIDs": lambda size: "\n".join(str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(size // 37)),
        "vectors": lambda size: json.dumps([chance.random() for _ in range(size // 20)]),
        "hashes of files": lambda size: "\n".join(f"{chance.randbytes(20).hex()}  {n}.py" for n in range(size // 48)),
        "words": lambda size: " ".join(chance.choices(PROSE.split(), k=size // 6)),
    }


def of_random_texts(identifiers: bool, rounds: int = 21) -> dict[str, tuple[float, float]]:
    """Nanoseconds of processor time per character, the median over texts of 10 KB and of 100 KB, redacted as in a document."""
    found = {}
    for name, make in random_looking(random.Random(1)).items():
        medians = []
        for size in (10_000, 100_000):
            spent = []
            for _ in range(rounds if size < 100_000 else 5):
                text, redactor = make(size), Redactor(identifiers=identifiers)
                start = time.process_time()
                redactor.expect([text])
                redactor.text(text)
                spent.append((time.process_time() - start) / len(text) * 1e9)
            medians.append(statistics.median(spent))
        found[name] = (medians[0], medians[1])
    return found


def megabytes_resident() -> float:
    """The peak of this process; 0 where the system does not say it."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1024)


def growth() -> list[tuple[str, float, float, float]]:
    """Milliseconds for 10 kB and 40 kB of a repeated beginning, and the ratio."""
    rows = []
    for piece in HOSTILE:
        small, large = (repeated_seconds(piece, size) for size in (10_000, 40_000))
        rows.append((repr(piece), small * 1e3, large * 1e3, large / small))
    return sorted(rows, key=lambda row: -row[2])


def repeated_seconds(piece: str, size: int) -> float:
    text = piece * (size // len(piece))
    return statistics.median(processor_seconds([text], True) for _ in range(3))


def fuzz(number: int) -> tuple[list[str], int]:
    """Rules that the scan left out although they match, and the number of texts that a rule matched."""
    wrong: list[str] = []
    matched = 0
    scan = _scan.Scan(identifiers=True)
    for rule in _scan.SECRETS + IDENTIFIERS:
        try:
            for text in generated(rule, number):
                if rule.sub(text, None) == text:
                    continue
                matched += 1
                wrong += [
                    f"{rule.vendor or rule.kind} is left out in {shown!r}"
                    for shown in (text, "\n".join((PROSE, text, PROSE)))
                    if not any(found is rule for found in scan.rules(shown))
                ]
        except Unsatisfiable:
            wrong.append(f"no text could be generated for {rule.vendor or rule.kind}")
    return wrong, matched


def generated(rule: Any, number: int) -> list[str]:
    """Texts that contain a match of the rule's pattern."""
    texts: list[str] = []
    # Hypothesis writes out what is looked ahead for, so that a key of a fixed length would become too long.
    pattern = re.sub(r"\(\?=\[A-Z\]\{0,16\}\[0-9\]\)", "", rule.pattern)

    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.from_regex(re.compile(pattern, rule.flags)))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts


def main(arguments: list[str] | None = None) -> None:
    """Three tables and the memory, or the result of the fuzzing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="a JSON list of texts, or recorded runs as JSON lines")
    parser.add_argument("--limit", type=float, default=2.8, help="megabytes of texts (default 2.8)")
    parser.add_argument("--fuzz", type=int, metavar="N", help="texts per rule")
    options = parser.parse_args(arguments)
    if options.fuzz:
        wrong, matched = fuzz(options.fuzz)
        print("\n".join(wrong) or f"the scan leaves out no rule that matches, in {matched:,} texts")
        raise SystemExit(bool(wrong))
    print(machine())
    texts, size = [], 0.0
    for text in recorded(options.texts) if options.texts else messages(12_000):
        texts.append(text)
        size += len(text.encode()) / 1e6
        if size >= options.limit:
            break
    print_table(f"Throughput, {size:.1f} MB in {len(texts):,} texts", ("", "MB/s"), throughput(texts))
    secrets, all_kinds = of_random_texts(False), of_random_texts(True)
    print_table(
        "Random-looking texts, ns a character",
        ("", "secrets, 10 KB", "100 KB", "with identifiers, 10 KB", "100 KB"),
        [(name, *secrets[name], *all_kinds[name]) for name in secrets],
    )
    print(f"\nresident: {megabytes_resident():.0f} MB")
    print_table("Hostile texts", ("repeated", "10 kB, ms", "40 kB, ms", "ratio"), growth())


if __name__ == "__main__":
    main()
