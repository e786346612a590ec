"""What pages cost beside a million runs: building their index, lists, filters, search and figures, many readers at once, and recording.

`build_store(path, runs)` makes the store: runs of mixed sizes over a year, by 25 agents, a third of them in Japanese. The floor is the
same question to the store itself, without the index. `--store` keeps the store and its index at a path and uses them again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from _measure import alone, flags, machine, print_table

import grace_kp as gk
from grace_kp.store import CatalogQuery, FeedbackEntry, Record, open_catalog, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCH = 2_000
BEGIN = datetime(2025, 11, 25, tzinfo=UTC)
YEAR_SECONDS = 365 * 86_400
DOMAINS = ("default", "finance", "code", "medical", "customer_service", "research")
STATUSES = ("completed",) * 93 + ("failed",) * 4 + ("not_approved",) * 2 + ("cancelled",)
SYLLABLES = (
    "ka",
    "ri",
    "mo",
    "ten",
    "sel",
    "dor",
    "vin",
    "pra",
    "lu",
    "cor",
    "ana",
    "tis",
    "gre",
    "bo",
    "shi",
    "mar",
    "el",
    "qua",
    "fen",
    "jo",
)
KANJI = "日本語東京都大阪天気予報会社取引銀行送金確認顧客注文返金配送在庫商品価格契約保険医療診断薬剤患者検査結果検索資料文書要約翻訳分析報告承認申請予約変更取消電話住所"
KANA = "のはがをにでとしたますですからまでよりこれそれあれという"
RARE, RARE_JAPANESE = "zebrafish", "鯨幕"
RARE_EVERY = 50_000
SEED = 7


def words(draw: random.Random) -> list[str]:
    """Words as a vocabulary has them: 4,000, of two to four syllables."""
    return ["".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))) for _ in range(4_000)]


def phrases(draw: random.Random) -> list[str]:
    """Japanese phrases: 4,000, of words in kanji and particles in kana."""
    return [
        "".join(draw.choices(KANJI, k=draw.randint(2, 4))) + "".join(draw.choices(KANA, k=draw.randint(1, 3)))
        for _ in range(4_000)
    ]


def records(runs: int, seed: int = SEED) -> Iterator[Record]:
    """Runs in the order of time, with a few that began earlier than the run before them."""
    from orjson import dumps

    draw = random.Random(seed)
    english, japanese = words(draw), phrases(draw)
    frequent = [1 / (rank + 3) for rank in range(4_000)]
    total = 0.0
    cumulative = [total := total + weight for weight in frequent]
    # Texts are cut from long sequences that are drawn once: drawing each word would take most of the time.
    prose = [draw.choices(vocabulary, cum_weights=cumulative, k=400_000) for vocabulary in (english, japanese)]
    step = YEAR_SECONDS / runs
    for number in range(runs):
        at = BEGIN + timedelta(seconds=number * step - draw.random() * 30)
        created = at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        is_japanese = number % 3 == 0
        drawn, joint = prose[is_japanese], "" if is_japanese else " "
        place = draw.randrange(390_000)

        def text(length: int, drawn: list[str] = drawn, joint: str = joint) -> str:
            nonlocal place
            place = (place + length) % 390_000
            return joint.join(drawn[place : place + length])

        calls = min(40, 1 + int(draw.expovariate(0.35)))
        objective = text(8)
        if number % RARE_EVERY == 11:
            objective += f" {RARE} {RARE_JAPANESE}です"
        steps: list[dict[str, Any]] = []
        for call in range(calls):
            tool = f"tool_{(number + call) % 12}"
            steps.append(
                {
                    "step_id": 2 * call,
                    "type": "tool_call",
                    "tool": {"name": tool},
                    "input": {"q": text(3)},
                    "latency_ms": 12.5,
                }
            )
            steps.append(
                {
                    "step_id": 2 * call + 1,
                    "type": "observation",
                    "content": text(draw.choice((4, 8, 20))),
                    "latency_ms": 12.5,
                }
            )
        result, status = text(15), STATUSES[draw.randrange(100)]
        confidence, score = round(draw.betavariate(5, 2), 3), round(draw.betavariate(4, 4), 4)
        agent = min(24, int(draw.expovariate(0.25)))
        user, session = f"user-{draw.randrange(10_000)}", f"session-{number // 4}"
        tags = ["production" if draw.random() < 0.8 else "staging", *(["vip"] if draw.random() < 0.02 else [])]
        level = ("silent", "notify", "confirm", "escalate")[draw.randrange(4)] if draw.random() < 0.15 else None
        passed = draw.random() < 0.9
        parent = f"kp:trace:{number - 1:032x}" if draw.random() < 0.2 and number else None
        name = f"kp:trace:{number:032x}"
        grace: dict[str, Any] = {
            "status": status, "name": f"agent-{agent}", "duration_ms": calls * 25.0, "tags": tags, "user": user, "session": session,
            "confidence": {"score": confidence, "level": "medium", "profile": "grace", "reason": "Weighted mean."},
            "usage": {"input_tokens": 900 * calls, "output_tokens": 70 * calls},
            "evaluation": {
                "mode": "always", "calls": 1, "tokens": 600, "self_evaluation": {"score": 0.8, "model": "judge-small", "fallback": not passed},
            },
            "scores": [{"name": "answer_quality", "score": 0.9, "passed": passed}] if number % 3 else [],
        }  # fmt: skip
        if level:
            grace["decisions"] = [{"id": f"{number:x}", "action": "send", "outcome": "executed", "level": level}]
        if parent:
            grace["parent"] = {"trace_id": parent}
        domain, success = DOMAINS[agent % len(DOMAINS)], status == "completed"
        document = {
            "@context": "https://openknowledgepulse.org/schema/v1", "@type": "ReasoningTrace", "id": name,
            "metadata": {"created_at": created, "task_domain": domain, "success": success, "quality_score": score},
            "task": {"objective": objective}, "steps": steps, "outcome": {"result_summary": result, "confidence": confidence}, "grace": grace,
        }  # fmt: skip
        attributes = [*(("tag", "", tag) for tag in tags), ("user", "", user), ("session", "", session)]
        yield Record(
            id=name, created_at=created, domain=domain, score=score, success=success, status=status,
            text="\n".join([objective, result, *(s["content"] for s in steps if "content" in s)]), data=dumps(document),
            scores=(("answer_quality", 0.9, passed),) if number % 3 else (),
            attributes=(*attributes, ("parent", "", parent)) if parent else tuple(attributes),
        )  # fmt: skip


def build_store(path: Path, runs: int) -> None:
    """Make a store with so many runs, one in a hundred of them with feedback."""
    store = open_store(f"sqlite:///{path}")
    batch: list[Record] = []

    def put() -> None:
        store.put(batch)
        store.put_feedback(
            [FeedbackEntry(r.id, time.time(), "user", b'{"label":1,"source":"user"}') for r in batch[::100]]
        )
        batch.clear()

    for record in records(runs):
        batch.append(record)
        if len(batch) == BATCH:
            put()
    if batch:
        put()
    store.close()


def megabytes(path: Path) -> float:
    """The size of a database with its log."""
    return sum(Path(f"{path}{end}").stat().st_size for end in ("", "-wal") if Path(f"{path}{end}").exists()) / (1 << 20)


FREQUENT = words(random.Random(SEED))[0]
"""The word that most runs in English contain."""
QUERIES: dict[str, dict[str, Any]] = {
    "first page": {},
    "agent, frequent": {"agent": "agent-0"},
    "agent, rare": {"agent": "agent-23"},
    "domain": {"domain": "medical"},
    "status, rare": {"status": "cancelled"},
    "level": {"level": "escalate"},
    "score from 0.95": {"min_score": 0.95},
    "score from 0.999 (none)": {"min_score": 0.9999},
    "confidence to 0.1": {"max_confidence": 0.1},
    "scorer failed": {"scorer": "answer_quality", "scorer_passed": False},
    "tag, rare": {"tags": ["vip"]},
    "user": {"user": "user-77"},
    "session": {"session": "session-7777"},
    "a week half a year ago": {"since": "2026-05-01", "until": "2026-05-08"},
    "feedback": {"feedback": True},
    "only roots": {"roots": True},
    "agent, status, tag": {"agent": "agent-9", "status": "failed", "tags": ["vip"]},
    "user and level": {"user": "user-77", "level": "confirm"},
    "domain of another agent (none)": {"agent": "agent-0", "domain": "code"},
    "two tags, status, score": {"tags": ["vip", "staging"], "status": "failed", "min_score": 0.7},
    "text, frequent": {"text": FREQUENT},
    "text, rare": {"text": RARE},
    "text, absent": {"text": "no such words anywhere"},
    "text, two Japanese characters, frequent": {"text": "京都"},
    "text, two Japanese characters, rare": {"text": RARE_JAPANESE},
    "text, one Japanese character": {"text": "幕"},
    "text of frequent trigrams, never together": {"text": "kakarika"},
    "text and agent": {"text": FREQUENT, "agent": "agent-9"},
    "text and user": {"text": FREQUENT, "user": "user-77"},
}
SAME: dict[str, Callable[[Any], Any]] = {
    "first page": lambda store: store.query(limit=50),
    "domain": lambda store: store.query(domain="medical", limit=50),
    "status, rare": lambda store: store.query(status="cancelled", limit=50),
    "score from 0.999 (none)": lambda store: store.query(min_score=0.9999, limit=50),
    "text, rare": lambda store: store.query(text=RARE, limit=50),
    "text, absent": lambda store: store.query(text="no such words anywhere", limit=50),
}
"""The same question to the store."""


def percentile(values: list[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def timed(work: Callable[[], Any], rounds: int) -> list[float]:
    """Milliseconds of each call."""
    spent = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        spent.append((perf_counter() - start) * 1e3)
    return spent


def asked(work: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """Median and 95th percentile of the milliseconds of a call, and the median of its processor time: other programs run as well."""
    work()
    wall, processor = [], []
    for _ in range(rounds):
        start, spent = perf_counter(), time.process_time()
        work()
        processor.append((time.process_time() - spent) * 1e3)
        wall.append((perf_counter() - start) * 1e3)
    return statistics.median(wall), percentile(wall, 0.95), statistics.median(processor)


def question_rows(path: Path, rounds: int) -> None:
    """Pages and figures, one reader."""
    store = open_store(f"sqlite:///{path}", create=False)
    catalog = open_catalog(store)
    rows = []
    for name, conditions in QUERIES.items():
        query = CatalogQuery(**conditions)
        page = catalog.find(query)
        floor: float | str = statistics.median(timed(lambda name=name: SAME[name](store), 1)) if name in SAME else ""
        figures = asked(lambda query=query: catalog.find(query), rounds)
        rows.append((name, *figures, floor, len(page.rows), page.searched_to or "all"))
    columns = ("query", "median", "p95", "processor", "store.query, once", "rows", "searched to")
    print_table("a page of 50, ms", columns, rows)
    rows = []
    for name, period in {"a week": ("2026-05-01", "2026-05-07"), "everything": ("2025-11-01", "2026-11-30")}.items():
        for agent in (None, "agent-3"):
            figures = asked(lambda period=period, agent=agent: catalog.figures(*period, agent=agent), rounds)
            rows.append((f"{name}, {agent or 'all agents'}", *figures))
    kinds = ("agent", "domain", "status", "tag", "scorer")
    rows.append(("names for the filters", *asked(lambda: [catalog.names(kind) for kind in kinds], rounds)))
    rows.append(("progress", *asked(catalog.progress, rounds)))
    print_table("figures, ms", ("figures", "median", "p95", "processor"), rows)
    catalog.close()
    store.close()


def read_at_once(path: Path, readers: int) -> dict[str, float]:
    """Many threads ask different questions at the same time; each asks ten."""
    store = open_store(f"sqlite:///{path}", create=False)
    catalog = open_catalog(store)
    spent: list[float] = []
    begin = threading.Barrier(readers + 1)
    kinds = [
        CatalogQuery(**QUERIES[name])
        for name in ("first page", "agent, rare", "user", "status, rare", "text, rare", "text and agent")
    ]

    def read(number: int) -> None:
        begin.wait()
        for turn in range(10):
            spent.extend(timed(lambda turn=turn: catalog.find(kinds[(number + turn) % len(kinds)]), 1))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(readers)]
    for thread in threads:
        thread.start()
    begin.wait()
    start = perf_counter()
    for thread in threads:
        thread.join()
    whole = perf_counter() - start
    catalog.close()
    store.close()
    return {
        "median ms": statistics.median(spent), "p95 ms": percentile(spent, 0.95), "answers a second": len(spent) / whole,
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def build_index(path: Path) -> dict[str, float]:
    """Index the whole store at once."""
    store = open_store(f"sqlite:///{path}", create=False)
    catalog = open_catalog(store)
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = perf_counter()
    done = catalog.refresh().done
    spent, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    catalog.close()
    store.close()
    return {
        "runs": done, "seconds": spent, "µs a run": spent / max(1, done) * 1e6,
        "processor µs a run": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / max(1, done) * 1e6,
        "MB": after.ru_maxrss / 1024,
    }  # fmt: skip


def record_for(path: Path, seconds: float) -> float:
    """Record runs with five tool calls for some seconds, and return how many a second were stored."""
    grace = gk.Grace(store=f"sqlite:///{path}", embedder=None, evaluator=None, reviewer=None)

    @grace.tool
    def look_up(query: str) -> str:
        return "y" * 200

    @grace.agent
    def agent(question: str) -> str:
        for number in range(5):
            look_up(f"{question} {number}")
        return "done"

    agent("warm")
    grace.flush()
    start, runs = perf_counter(), 0
    while perf_counter() - start < seconds:
        agent("How much is it?")
        runs += 1
        if runs % 200 == 0:
            grace.flush()
    grace.flush()
    spent = perf_counter() - start
    grace.close()
    return runs / spent


def follow(path: Path) -> None:
    """Follow a store until a line comes in."""
    store = open_store(f"sqlite:///{path}")
    catalog = open_catalog(store)
    catalog.follow()
    print("ready", flush=True)
    sys.stdin.readline()
    catalog.close()
    store.close()


def recording_row(path: Path, seconds: float, pairs: int, name: str) -> tuple[Any, ...]:
    """Recording speed without and with a process that follows, in turns."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    for pair in range(pairs):
        for is_followed in (False, True) if pair % 2 else (True, False):
            follower = None
            if is_followed:
                command = [*flags(), __file__, "--task", "follow", "--store", str(path)]
                follower = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                follower.stdout.readline()
            rates[is_followed].append(alone(__file__, "record", "--store", path, "--seconds", seconds))
            if follower is not None:
                follower.communicate("\n", timeout=60)
    ratios = [followed / alone_ for alone_, followed in zip(rates[False], rates[True], strict=True)]
    return (
        name,
        statistics.median(rates[False]),
        statistics.median(rates[True]),
        statistics.median(ratios),
        min(ratios),
        max(ratios),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path, help="keep the store at this path, and use it if it is there")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument(
        "--pairs", type=int, default=5, help="pairs of recording without and with a follower; 0 for none"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each of them records")
    parser.add_argument("--task", choices=("index", "readers", "record", "follow"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        tasks: dict[str, Callable[[], Any]] = {
            "index": lambda: build_index(options.store), "readers": lambda: read_at_once(options.store, options.readers),
            "record": lambda: record_for(options.store, options.seconds), "follow": lambda: follow(options.store),
        }  # fmt: skip
        result = tasks[options.task]()
        if options.task != "follow":
            print(json.dumps(result))
        return
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        measure(options, options.store or Path(folder) / "runs.db")


def measure(options: argparse.Namespace, path: Path) -> None:
    """All tables."""
    if not path.exists():
        start = perf_counter()
        build_store(path, options.runs)
        print_table(
            "the store", ("runs", "seconds", "MB"), [(f"{options.runs:,}", perf_counter() - start, megabytes(path))]
        )
    index = Path(f"{path}.index")
    if not index.exists():
        built = alone(__file__, "index", "--store", path)
        print_table("building the index", (*built, "index, MB"), [(*built.values(), megabytes(index))])
    question_rows(path, options.rounds)
    readers = alone(__file__, "readers", "--store", path, "--readers", options.readers)
    print_table(f"{options.readers} readers at once", ("", *readers), [("", *readers.values())])
    if options.pairs:
        columns = ("", "alone, runs/s", "followed, runs/s", "ratio", "least", "largest")
        rows = [recording_row(path, options.seconds, options.pairs, "an index that is up to date")]
        for end in ("-wal", "-shm", ""):
            Path(f"{index}{end}").unlink(missing_ok=True)
        rows.append(recording_row(path, options.seconds, options.pairs, "an index that is being built"))
        print_table("recording by another process", columns, rows)


if __name__ == "__main__":
    main()
