"""`grace-kp demo`: an offline agent that is recorded, scored and gated.

The agent answers questions about source files with five tools; a few rules replace a model. The files do not answer its last question, and
the confidence shows it: the search finds little, and the check of the answer fails.
"""

from __future__ import annotations

import functools
import math
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import clean, columns, console, put_json, shorten, writes_unicode
from grace_kp.cli._page import put, put_field, put_text
from grace_kp.cli._trace_page import put_figures
from grace_kp.errors import ActionCancelled, ActionNotApproved

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from grace_kp.runtime import Grace
    from grace_kp.trace import ReasoningTrace

QUESTIONS = (
    "Where are secrets removed from JSON values?",
    "Where are webhooks signed?",
    "How much does a refund cost?",
)
_WORD = re.compile(r"[a-z]{3,}")
_COMMON = frozenset({"are", "does", "from", "how", "the", "where"})
_SENTENCE = re.compile(r'"""(\w[^"]*?\.)(?:\s|""")')
"""The first sentence of a docstring."""
_DEFINITION = re.compile(r"^(?:async )?(?:def|class) ([a-zA-Z]\w*)", re.MULTILINE)


def demo(
    store: Annotated[str, typer.Option("--store", help="Store for the traces; memory: keeps nothing.")] = "memory:",
    as_json: Annotated[bool, typer.Option("--json", help="Print only the traces, as one JSON list.")] = False,
) -> None:
    """Watch an agent work offline: its trace as it grows, the scores with their parts, and a gated action."""
    from grace_kp.runtime import Grace
    from grace_kp.store import open_store

    open_store(store).close()  # fails before any output if the store cannot be used
    out = console()
    out.quiet = as_json
    root = Path(__file__).resolve().parents[1]
    with Grace(store=store, domain="code") as grace, grace.collect() as traces:
        put_text(
            out,
            f"\nAn agent without a model answers {len(QUESTIONS)} questions from the files in {clean(root.name)}"
            " and writes a report. The files do not answer the last one.",
        )
        agent = _agent(grace, root, out, lambda answer: _summary(out, traces[-1], answer))
        with tempfile.TemporaryDirectory(prefix="grace_kp_demo_") as folder:
            try:
                result = agent(str(Path(folder) / "report.txt"))
                put_text(out, "The report was skipped." if result is None else clean(result), style="green")
            except ActionNotApproved as refusal:
                put_text(out, clean(str(refusal)), style="yellow")
                if isinstance(refusal, ActionCancelled) and not (sys.stdin and sys.stdin.isatty()):
                    put_text(out, "Run this in a terminal to be asked.")
    if as_json:
        put_json([trace.to_dict() for trace in traces])
        return
    command = _invocation()
    put(out, "\nWhat next:")
    put(out, f"  {command} demo --store sqlite:///demo.db     the same, kept in a file")
    put(out, f"  {command} traces show last --store sqlite:///demo.db")
    put(out, f"  {command} doctor     what is installed, configured, reachable")
    if (root.parent / "docs" / "tutorial.md").is_file():
        put(out, "  docs/tutorial.md     the same for an agent of your own, in ten minutes")
    put(out, "")


def _invocation() -> str:
    """Return the command that starts this program here: its name if it is on the PATH, else its path."""
    program = Path(sys.argv[0])
    is_module = program.name == "__main__.py"
    found = None if is_module else shutil.which(program.name)
    if found is not None and Path(found).absolute() == program.absolute():
        return clean(program.name)
    path, here = Path(sys.executable if is_module else program).absolute(), Path.cwd()
    named = clean(str(path.relative_to(here) if path.is_relative_to(here) else path))
    return f"{named} -m grace_kp.cli" if is_module else named


def _agent(grace: Grace, root: Path, out: Console, answered: Callable[[str], None]) -> Callable[[str], str | None]:
    """Return the agent, which runs another one for each question and ends with a gated action."""
    step = functools.partial(_show_step, out)

    @grace.tool
    def list_files(pattern: str) -> list[str]:
        return [path.relative_to(root).as_posix() for path in sorted(root.rglob(pattern))]

    @grace.retriever
    def search(question: str, files: list[str]) -> list[dict[str, Any]]:
        return _rank_sentences(root, _words(question), files)

    @grace.tool
    def read_file(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    @grace.tool
    def outline(source: str) -> list[str]:
        return _DEFINITION.findall(source)

    @grace.tool
    def check(sentence: str, question: str) -> str:
        asked = _words(question)
        missing = asked - _words(sentence)
        if len(missing) > len(asked) / 3:
            raise LookupError(f"it says nothing about {', '.join(sorted(missing))}")
        return sentence

    @grace.agent(objective="{question}")
    def researcher(question: str) -> str:
        put_text(out, f"\n? {clean(question)}", style="bold")
        files = step("list_files", "*.py", lambda: list_files("*.py"))
        best, *_ = step("search", question, lambda: search(question, files))
        grace.thought(f"{best['source']} looks best")
        answer = f"{best['source']}: {best['text']}"
        source = step("read_file", best["source"], lambda: read_file(best["source"]))
        step("outline", f"{len(source):,} characters", lambda: outline(source))
        try:
            step("check", best["text"], lambda: check(best["text"], question))
        except LookupError:
            answer = f"perhaps {answer}"
        return answer

    @grace.gate(floor="confirm")
    @grace.tool
    def write_report(path: str, text: str) -> str:
        Path(path).write_text(text, encoding="utf-8")
        return f"{len(text):,} characters written to {path}"

    @grace.agent(name="reporter", objective=f"Write a report on {len(QUESTIONS)} questions")
    def reporter(path: str) -> str | None:
        answers = []
        for question in QUESTIONS:
            answers.append(researcher(question))
            answered(answers[-1])
        put_text(out, "\nIts last step is gated: it wants to write a report, and its policy asks for a person.")
        return write_report(path, "\n".join(answers))

    return reporter


def _show_step(out: Console, tool: str, argument: str, call: Callable[[], Any]) -> Any:
    """Call a tool and print its step as one line: mark, call, outcome, result."""
    from rich.cells import set_cell_size
    from rich.text import Text

    started = time.perf_counter()
    worked, broke = ("✓", "✗") if writes_unicode(sys.stdout) else ("+", "-")
    mark, style, found, outcome = broke, "red", "", ""
    try:
        result = call()
        mark, style, outcome = worked, "green", f"{(time.perf_counter() - started) * 1e3:7.1f} ms"
        found = f"{len(result)} found" if isinstance(result, list) else clean(str(result))
        return result
    except Exception as error:
        outcome = f"{type(error).__name__}, going on"
        raise
    finally:
        width = columns(sys.stdout)
        room = max(14, min(42, width - 5 - len(outcome)))
        called = set_cell_size(shorten(f"{tool:<11} {clean(argument)}", room), room)
        rest = shorten(f" {called} {outcome}{f'  {found}' if found else ''}", width - 3)
        put(out, Text("  ").append(mark, style).append(rest))


def _words(text: str) -> set[str]:
    """Return the significant words, without plural and verb endings."""
    words = set(_WORD.findall(text.lower())) - _COMMON
    return {re.sub(r"(?<=\w{3})(?:ing|e?s|ed?)$", "", word) for word in words}


def _rank_sentences(root: Path, asked: set[str], files: list[str]) -> list[dict[str, Any]]:
    """Return the five sentences that cover the words best, with the covered share of their weight."""
    sentences = [
        (name, " ".join(found.split()), _words(found))
        for name in files
        for found in _SENTENCE.findall((root / name).read_text(encoding="utf-8"))
    ]
    counts = Counter(word for _, _, words in sentences for word in words)
    weights = {word: math.log(1 + len(sentences) / (1 + counts[word])) for word in asked}
    hits = [
        {
            "source": name,
            "text": sentence,
            "score": round(sum(weights[word] for word in asked & words) / sum(weights.values()), 3),
        }
        for name, sentence, words in sentences
    ]
    return sorted(hits, key=lambda hit: (-float(str(hit["score"])), len(str(hit["text"]))))[:5]


def _summary(out: Console, trace: ReasoningTrace, answer: str) -> None:
    put(out, "")
    put_text(out, clean(trace.task.objective), style="bold")
    put_text(out, f"-> {clean(answer, 150)}")
    kinds = Counter(str(step.type) for step in trace.steps)
    put_field(out, "steps", ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    put_figures(out, trace, full=True)
