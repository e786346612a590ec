"""Ratings: judgements of an output by two raters, how disputes are settled, how far the raters agree, and the raters themselves.

A rater is a model that judges findings by the answer key, or a person, asked on a terminal or through any other pair of functions. The
problems in a model's reply have codes that the findings cannot contain.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from grace_kp.errors import GraceError, brief, check_whole
from grace_kp.judge import INVISIBLE, RULES, call_judge, fence_texts, language_of
from grace_kp.pages import printable
from grace_kp.rubric._variants import Detection, Run, Variant, check_count, detections_of
from grace_kp.trace import describe_error, object_without_duplicates, redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from grace_kp.judge import Prompt
    from grace_kp.protocols import AskableJudge, Judge
    from grace_kp.rubric._variants import Document, TestSet


ORDER = (Detection.MISSED, Detection.PARTIAL, Detection.DETECTED)
_NO_REASON = "no reason given"


class NotRated(GraceError):
    """No rater could judge a problem. The message says which problem, and why."""


@dataclass(frozen=True, slots=True)
class Rating:
    """The judgements of one rater about one output.

    Raises:
        ValueError: a judgement or a count cannot be used.
    """

    judgements: Mapping[str, Detection]
    """By problem id; a problem that the rater could not judge is missing."""
    bonuses: int = 0
    """Findings beyond the key that are true, useful and in scope."""
    penalties: int = 0
    """Findings that are certainly out of scope or wrong."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By problem id, the reason of the judgement, or why there is none."""
    rater: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "judgements", detections_of(self.judgements))
        check_count("bonuses", self.bonuses)
        check_count("penalties", self.penalties)


class Rater(Protocol):
    """A person or model that judges an output by the answer key of its document."""

    name: str

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Judge an output.

        Args:
            document: the document, whose problems hold the answer key.
            output: the findings of a variant about the document.
            scope: the subjects that findings may be about.
        """
        ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree on the problems that both judged."""

    kappa: float | None
    """Cohen's kappa, −1 to 1; None where it is undefined: nothing was judged twice, or both raters gave every problem the same judgement."""
    observed: float | None
    """The share of the problems on which they agree; None where nothing was judged twice."""
    problems: int
    """How many problems were judged twice, counted for each run."""
    counts: Mapping[str, int]
    """How often each pair of judgements occurs, such as `○△` (first and second rater)."""


def agreement_of(pairs: Iterable[tuple[Detection, Detection]]) -> Agreement:
    """Return the agreement of pairs of judgements, with Cohen's kappa: (observed − expected) / (1 − expected).

    The expected agreement follows from how often each rater gives each judgement.
    """
    counts = Counter(pairs)
    total = sum(counts.values())
    if not total:
        return Agreement(None, None, 0, {})
    observed = sum(count for (first, second), count in counts.items() if first is second) / total
    firsts, seconds = Counter[Detection](), Counter[Detection]()
    for (first, second), count in counts.items():
        firsts[first] += count
        seconds[second] += count
    # In whole numbers, so that agreement by necessity is recognised exactly.
    expected = sum(firsts[member] * seconds[member] for member in ORDER)
    kappa = None if expected == total**2 else (observed - expected / total**2) / (1 - expected / total**2)
    by_symbols = {
        first.symbol + second.symbol: counts[first, second]
        for first, second in product(reversed(ORDER), repeat=2)
        if counts[first, second]
    }
    return Agreement(kappa, observed, total, by_symbols)


@dataclass(frozen=True, slots=True)
class Output:
    """The findings of a variant about a document in one run, with their ratings, if any."""

    document: str
    text: str | None = None
    """None where only judgements are known."""
    ratings: tuple[Rating, ...] = ()


@dataclass(frozen=True, slots=True)
class Dispute:
    """A problem that two raters judged differently."""

    run: int
    """Counted from 1."""
    document: str
    problem: str
    first: Detection
    second: Detection
    settled: Detection
    reasons: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Gap:
    """Problems that a rater or the referee was asked to judge and did not judge."""

    run: int
    """Counted from 1."""
    document: str
    rater: str
    problems: tuple[str, ...]
    reason: str
    """The reason for the first of the problems."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A variant whose outputs have been judged."""

    variant: Variant
    outputs: tuple[Output, ...]
    """With all ratings."""
    agreement: Agreement
    disputes: tuple[Dispute, ...]
    gaps: tuple[Gap, ...] = ()
    """Missing judgements; the judgement of the other rater, if any, counts alone."""


def rate(
    name: str,
    outputs: Sequence[Output],
    test_set: TestSet,
    raters: Sequence[Rater] = (),
    *,
    referee: Rater | None = None,
) -> Rated:
    """Judge the outputs of a variant with up to two raters, and settle their disputes.

    The referee decides where two judgements of a problem differ; without a referee the lower one counts. Of the two counts of bonuses and of
    penalties, the smaller one counts, so that doubt gives no penalty. These counts leave out a rater who judged nothing. A missing
    judgement is reported as a gap; a problem that no rater judged is an error.

    Args:
        name: the name of the variant.
        outputs: one for each run. Outputs that have ratings keep them and are not judged again.
        test_set: the answer keys; the raters also get the documents and the scope.
        raters: at most two.
        referee: judges outputs with disputes.

    Raises:
        NotRated: an output has neither ratings nor content, or no rater judged a problem.
        ValueError: there are more than two raters, or an output does not fit the test set.
    """
    if len(raters) > 2 or any(len(output.ratings) > 2 for output in outputs):
        raise ValueError("an output is judged by at most two raters; a third rater is the referee")
    runs, rated, pairs = [], [], []
    disputes: list[Dispute] = []
    gaps: list[Gap | None] = []
    for number, output in enumerate(outputs, 1):
        document = test_set.document(output.document)
        problems = [problem.id for problem in document.problems]
        ratings = output.ratings or _ask(output, number, document, raters, test_set.scope)
        rated.append(replace(output, ratings=ratings))
        gaps += [_gap(number, document, rating, problems) for rating in ratings]
        judgements: dict[str, Detection] = {}
        found: list[Dispute] = []
        for problem in problems:
            judged = [rating.judgements[problem] for rating in ratings if problem in rating.judgements]
            if not judged:
                reasons = dict.fromkeys(rating.reasons.get(problem, _NO_REASON) for rating in ratings)
                raise NotRated(f"run {number}: the problem {problem!r} could not be judged: {'; '.join(reasons)}")
            judgements[problem] = lower = min(judged, key=ORDER.index)
            if len(judged) == 2:
                first, second = judged
                pairs.append((first, second))
                if first is not second:
                    reasons_of_both = (ratings[0].reasons.get(problem, ""), ratings[1].reasons.get(problem, ""))
                    found.append(Dispute(number, document.id, problem, first, second, lower, reasons_of_both))
        if found and referee is not None and output.text is not None:
            third = referee.rate(document, output.text, scope=test_set.scope)
            gaps.append(_gap(number, document, third, [dispute.problem for dispute in found]))
            found = [replace(item, settled=third.judgements.get(item.problem, item.settled)) for item in found]
            judgements.update((dispute.problem, dispute.settled) for dispute in found)
        disputes += found
        counting = [rating for rating in ratings if rating.judgements or not problems]
        bonuses = min(rating.bonuses for rating in counting)
        runs.append(Run(output.document, judgements, bonuses, min(rating.penalties for rating in counting)))
    variant = Variant(name, tuple(runs), test_set)
    return Rated(variant, tuple(rated), agreement_of(pairs), tuple(disputes), tuple(filter(None, gaps)))


def _gap(number: int, document: Document, rating: Rating, problems: Sequence[str]) -> Gap | None:
    missing = tuple(problem for problem in problems if problem not in rating.judgements)
    if not missing:
        return None
    return Gap(number, document.id, rating.rater or "a rater", missing, rating.reasons.get(missing[0], _NO_REASON))


def _ask(output: Output, number: int, document: Document, raters: Sequence[Rater], scope: str) -> tuple[Rating, ...]:
    if not raters:
        raise NotRated(f"run {number} ({output.document}) has no judgements, and no rater was passed")
    if output.text is None:
        raise NotRated(f"run {number} ({output.document}) has neither judgements nor an output to judge")
    return tuple(rater.rate(document, output.text, scope=scope) for rater in raters)


VERSION = "2026-11-1"
MAX_REPLY = 200_000
MAX_CHARS = 400_000
"""Characters of findings or key. Longer ones are not judged, because a judgement of a part would look like one of the whole."""
_NO_FINDING = {"", "none", "nothing", "n/a", "na", "-", "なし", "無し", "特になし", "該当なし"}
MAX_REASON = 500
_TEXTS = tomllib.loads(files("grace_kp.rubric").joinpath("prompts.toml").read_text(encoding="utf-8"))
"""By language; `{code}` is a placeholder."""


class ModelRater:
    """A model that judges by the answer key. Scope, document, key and findings are fenced off as data.

    The reply must name each problem by a random code, so a verdict in the findings that the model only repeats has no effect.
    Findings that persuade the model are not recognised: check the disputes and a sample of the rest yourself.
    """

    def __init__(
        self,
        judge: Judge | AskableJudge,
        *,
        language: str = "auto",
        attempts: int = 2,
        timeout: float | None = None,
        name: str | None = None,
    ) -> None:
        """Set the model.

        Args:
            judge: any callable from prompt to text, sync or async, or a judge such as `GeminiJudge`.
            language: of the instructions: `en`, `ja`, or `auto`, by the language of the findings.
            attempts: how often the model is asked at most while a reply does not judge every problem.
            timeout: seconds for one reply; None for no limit.
            name: the rater's name in ratings; the model's name when None.

        Raises:
            TypeError: the judge cannot be called.
            ValueError: another argument cannot be used.
        """
        if not callable(judge) and not callable(getattr(judge, "ask", None)):
            raise TypeError(f"a judge is a callable from prompt to text (got {type(judge).__name__})")
        if language not in {"auto", "en", "ja"}:
            raise ValueError(f"language must be auto, en or ja (got {language!r})")
        check_whole("attempts", attempts)
        self.name = str(name or getattr(judge, "model", None) or getattr(judge, "__name__", "model"))
        self._judge = judge
        self._language = language
        self._attempts = attempts
        self._timeout = timeout

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Judge an output. Problems without a judgement are left out, with the reason; after a failure these are all problems."""
        if len(output) > MAX_CHARS or sum(len(problem.key) for problem in document.problems) > MAX_CHARS:
            return self._not_rated(document, f"findings or key are longer than {MAX_CHARS:,} characters")
        prompt = self.prompt(document, output, scope=scope)
        best = self._not_rated(document, "the model was not asked")
        for _ in range(self._attempts):
            try:
                # Varied, because two identical judgements would always agree, whatever they are worth.
                reply = call_judge(self._judge, prompt.text, vary=True, fields=(), timeout=self._timeout)
                rating = _read_reply(reply, prompt, document, self.name)
            except Exception as error:  # noqa: BLE001 — any failure of a judge is recorded as the reason
                rating = self._not_rated(document, redact_text(": ".join(describe_error(error, 300)), identifiers=True))
            if len(rating.judgements) >= len(best.judgements):
                best = rating
            if len(best.judgements) == len(document.problems):
                break
        return best

    def _not_rated(self, document: Document, reason: str) -> Rating:
        return Rating({}, reasons={problem.id: reason for problem in document.problems}, rater=self.name)

    def prompt(self, document: Document, output: str, *, scope: str = "") -> Prompt:
        """Return the prompt for an output."""
        language = language_of(output) if self._language == "auto" else self._language
        phrases = _TEXTS[language]
        key = "\n\n".join(
            f"{number}. ({problem.category}, {problem.severity}) {problem.key or problem.id}"
            for number, problem in enumerate(document.problems, 1)
        )
        texts = [("scope", scope), ("document", document.text), ("key", key), ("findings", output)]
        return fence_texts(
            "rubric",
            language,
            f"{phrases['task']}\n\n{RULES[language]}\n\n{phrases['form']}",
            [(title, text) for title, text in texts if text or title == "findings"],
            version=VERSION,
            titles=phrases["titles"],
            max_chars=2 * MAX_CHARS,
        )


def _read_reply(reply: object, prompt: Prompt, document: Document, rater: str) -> Rating:
    fields = _json_object(reply)
    verdicts = fields.get("judgements")
    if not isinstance(verdicts, dict):
        raise ValueError("the reply has no judgements")
    judgements: dict[str, Detection] = {}
    reasons: dict[str, str] = {}
    for number, problem in enumerate(document.problems, 1):
        item = verdicts.get(f"{prompt.code}-{number}")
        verdict, reason = (item.get("verdict"), item.get("reason")) if isinstance(item, dict) else (item, None)
        try:
            judgements[problem.id] = Detection.of(verdict)
            reasons[problem.id] = redact_text(str(reason or ""), identifiers=True)[:MAX_REASON]
        except ValueError:
            unknown = redact_text(f"the reply judges it as {brief(verdict)}", identifiers=True)
            reasons[problem.id] = "the reply does not judge it" if item is None else unknown
    certain = [
        item for item in _findings(fields, "penalties") if isinstance(item, dict) and item.get("certain") is True
    ]
    return Rating(judgements, len(_findings(fields, "bonuses")), len(certain), reasons, rater)


def _findings(fields: dict[str, Any], name: str) -> list[Any]:
    """Return the findings of a list, strings or objects with a string, without entries such as "none"."""
    items = fields.get(name)
    if not isinstance(items, list):
        raise ValueError(f"the reply has no list of {name}")
    texts = [item.get("finding") if isinstance(item, dict) else item for item in items]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"the reply has an item among its {name} that is not a finding")
    return [
        item
        for item, text in zip(items, texts, strict=True)
        if str(text).strip(" \t\n.。").casefold() not in _NO_FINDING
    ]


def _json_object(reply: object) -> dict[str, Any]:
    if isinstance(reply, dict):
        return reply
    if not isinstance(reply, str):
        raise ValueError(f"the reply is a {type(reply).__name__}, not a string")
    if len(reply) > MAX_REPLY:
        raise ValueError(f"the reply is longer than {MAX_REPLY:,} characters")
    start, end = reply.find("{"), reply.rfind("}")
    try:
        found = json.loads(reply[start : end + 1], object_pairs_hook=object_without_duplicates) if start >= 0 else None
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("the reply is not a JSON object")
    return found


class PersonRater:
    """A person who sees the output and judges the problems in turn: o, t (△) or x; then the numbers of bonuses and penalties."""

    def __init__(
        self, *, ask: Callable[[str], str] = input, tell: Callable[[str], object] = print, name: str = "person"
    ) -> None:
        """Set how the person is asked.

        Args:
            ask: shows a question and returns the line that is typed; its exceptions are raised to the caller.
            tell: shows a string.
            name: the rater's name in ratings.
        """
        self.name = name
        self._ask = ask
        self._show = tell

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Ask until every problem is judged; Enter alone judges nothing."""
        show = self._show
        show(f"\nDocument {_visible(document.id)} ({_visible(document.domain)})")
        if scope:
            show(f"Scope: {_visible(scope)}")
        show(f"\n{_visible(output)}\n")
        judgements: dict[str, Detection] = {}
        for number, problem in enumerate(document.problems, 1):
            name = f"{_visible(problem.id)} ({_visible(problem.category)}, {problem.severity})"
            key = f"\n{_visible(problem.key)}" if problem.key else ""
            show(f"{number} of {len(document.problems)}: {name}{key}")
            judgements[problem.id] = self._ask_judgement()
        bonuses = self._ask_count("How many further findings are true, useful and in scope? ")
        penalties = self._ask_count("How many findings are certainly wrong or out of scope? ")
        return Rating(judgements, bonuses, penalties, rater=self.name)

    def _ask_judgement(self) -> Detection:
        while True:
            typed = self._ask("[o] detected  [t] partial  [x] missed > ").strip().lower()
            try:
                return Detection.PARTIAL if typed == "t" else Detection.of(typed)
            except ValueError:
                self._show("Please type o, t or x.")

    def _ask_count(self, question: str) -> int:
        while True:
            typed = self._ask(question).strip()
            if typed.isascii() and typed.isdigit() and len(typed) < 5:
                return int(typed)
            self._show("Please type a number, 0 for none.")


def _visible(text: str) -> str:
    return printable(INVISIBLE.sub("", text), keep="\n\t", replace="�")
