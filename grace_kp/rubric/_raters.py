"""Who judges outputs: a model with the answer key before it, or a person who is asked one problem after the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grace_kp.errors import brief
from grace_kp.judge import INVISIBLE, RULES, call_judge, fence_texts, language_of
from grace_kp.rubric._judgement import Detection
from grace_kp.rubric._rating import Rating
from grace_kp.trace import describe_error, printable, redact_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.judge import Prompt
    from grace_kp.rubric._test_set import Document

VERSION = "2026-11-1"
MAX_REPLY = 200_000
MAX_CHARS = 400_000
"""Characters of findings or key; a part of them would be judged as if it were all, so what is longer is not judged."""
_NO_FINDING = {"", "none", "nothing", "n/a", "na", "-", "なし", "無し", "特になし", "該当なし"}
MAX_REASON = 500
_TASK = {
    "en": """\
You check what a reviewer found in a document against an answer key of problems that are known to be in it.

For each problem of the key say "detected" if the findings meet everything that the key asks for, "partial" if a finding is related but
misses the heart of the problem, and "missed" if nothing is said of it. Then list findings beyond the key that lie within the scope, rest on
facts and are useful, as bonuses; and findings that lie outside of the scope, contradict the facts or are clearly wrong, as penalties. A
penalty is certain only if there is no doubt whatever.""",
    "ja": """\
文書に含まれることが分かっている問題の正解キーに照らして、レビュー担当者の指摘を確認してください。

正解キーの各問題について、判定基準をすべて満たす指摘があれば「detected」、関連する指摘はあるが核心を捉えていなければ「partial」、
指摘がまったくなければ「missed」としてください。次に、正解キーにないが評価範囲に合致し事実に基づく有益な指摘をボーナス（bonuses）として、
範囲外の指摘、事実に反する指摘、明らかに誤った指摘をペナルティ（penalties）として挙げてください。疑いの余地がまったくない場合だけ
ペナルティを確実（certain）としてください。""",
}
_FORM = {
    "en": """\
Reply with one JSON object and nothing else. Problem number n of the key is named "{code}-n" in it:
{"judgements": {"{code}-n": {"verdict": "detected | partial | missed", "reason": "one sentence"}, …},
 "bonuses": ["the finding", …], "penalties": [{"finding": "…", "certain": true or false}, …]}""",
    "ja": """\
次の形の JSON オブジェクト一つだけで答えてください。正解キーの n 番の問題はその中で "{code}-n" と呼びます：
{"judgements": {"{code}-n": {"verdict": "detected | partial | missed", "reason": "一文の理由"}, …},
 "bonuses": ["指摘", …], "penalties": [{"finding": "…", "certain": true または false}, …]}""",
}
_TITLES = {
    "en": {"scope": "SCOPE", "document": "DOCUMENT", "key": "ANSWER KEY", "findings": "FINDINGS"},
    "ja": {"scope": "評価範囲", "document": "文書", "key": "正解キー", "findings": "指摘"},
}
_NOTHING_SAID = "the reply does not judge it"


class ModelRater:
    """A model that judges by the answer key. Scope, document, key and findings are fenced off as data.

    The reply must name each problem by a code that nobody who wrote the findings can know, so a verdict that stands in them and is merely
    repeated counts nothing. Findings that persuade the model are not recognised: look at the disputes, and at some of the rest, by eye.
    """

    def __init__(
        self,
        judge: Any,
        *,
        language: str = "auto",
        attempts: int = 2,
        timeout: float | None = None,
        name: str | None = None,
    ) -> None:
        """Ask a model.

        Args:
            judge: any callable from prompt to text, sync or async, or a judge such as `GeminiJudge`.
            language: of the instructions: `en`, `ja`, or `auto`, by the findings.
            attempts: how often it is asked where a reply does not judge every problem.
            timeout: seconds for one reply; None for none.
            name: what ratings call it; the model's name when None.

        Raises:
            TypeError: the judge cannot be called.
            ValueError: another argument cannot be used.
        """
        if not callable(judge) and not callable(getattr(judge, "ask", None)):
            raise TypeError(f"a judge is a callable from prompt to text (got {type(judge).__name__})")
        if language not in {"auto", "en", "ja"}:
            raise ValueError(f"language must be auto, en or ja (got {language!r})")
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ValueError(f"attempts must be a whole number from 1 (got {attempts!r})")
        self.name = str(name or getattr(judge, "model", None) or getattr(judge, "__name__", "model"))
        self._judge = judge
        self._language = language
        self._attempts = attempts
        self._timeout = timeout

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Judge an output. Problems that no reply judged, and all of them where the model could not be asked, are left out with the reason."""
        too_long = len(output) > MAX_CHARS or sum(len(one.key) for one in document.problems) > MAX_CHARS
        if too_long:
            why = f"findings or key are longer than {MAX_CHARS:,} characters"
            return Rating({}, reasons=dict.fromkeys((one.id for one in document.problems), why), rater=self.name)
        prompt = self.prompt(document, output, scope=scope)
        best = Rating({}, reasons={one.id: "the model was not asked" for one in document.problems}, rater=self.name)
        for _ in range(self._attempts):
            try:
                # Varied, because two judgements of a model that always says the same would agree whatever they are worth.
                reply = call_judge(self._judge, prompt.text, vary=True, fields=(), timeout=self._timeout)
                rating = _read(reply, prompt, document, self.name)
            except Exception as error:  # noqa: BLE001 — whatever a judge does, it is told and is no judgement
                why = redact_text(": ".join(describe_error(error, 300)), identifiers=True)
                rating = Rating({}, reasons=dict.fromkeys((one.id for one in document.problems), why), rater=self.name)
            if len(rating.judgements) >= len(best.judgements):
                best = rating
            if len(best.judgements) == len(document.problems):
                break
        return best

    def prompt(self, document: Document, output: str, *, scope: str = "") -> Prompt:
        """What the model is asked."""
        language = language_of(output) if self._language == "auto" else self._language
        key = "\n\n".join(
            f"{number}. ({one.category}, {one.severity}) {one.key or one.id}"
            for number, one in enumerate(document.problems, 1)
        )
        texts = [("scope", scope), ("document", document.text), ("key", key), ("findings", output)]
        return fence_texts(
            "rubric",
            language,
            f"{_TASK[language]}\n\n{RULES[language]}\n\n{_FORM[language]}",
            [(title, text) for title, text in texts if text or title == "findings"],
            version=VERSION,
            titles=_TITLES[language],
            max_chars=2 * MAX_CHARS,
        )


def _read(reply: Any, prompt: Prompt, document: Document, rater: str) -> Rating:
    told = _object(reply)
    given = told.get("judgements")
    if not isinstance(given, dict):
        raise ValueError("the reply has no judgements")
    judgements: dict[str, Detection] = {}
    reasons: dict[str, str] = {}
    for number, problem in enumerate(document.problems, 1):
        said = given.get(f"{prompt.code}-{number}")
        verdict = said.get("verdict") if isinstance(said, dict) else said
        try:
            judgements[problem.id] = Detection.of(verdict)
            reason = said.get("reason") if isinstance(said, dict) else None
            reasons[problem.id] = redact_text(str(reason or ""), identifiers=True)[:MAX_REASON]
        except ValueError:
            told_ = redact_text(f"the reply says {brief(verdict)} of it", identifiers=True)
            reasons[problem.id] = _NOTHING_SAID if said is None else told_
    certain = [one for one in _findings(told, "penalties") if isinstance(one, dict) and one.get("certain") is True]
    return Rating(judgements, len(_findings(told, "bonuses")), len(certain), reasons, rater)


def _findings(told: dict[str, Any], name: str) -> list[Any]:
    """The findings of a list: texts, or objects with one; without what only says that there are none."""
    listed = told.get(name)
    if not isinstance(listed, list):
        raise ValueError(f"the reply has no list of {name}")
    texts = [one.get("finding") if isinstance(one, dict) else one for one in listed]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"the reply has something among its {name} that is no finding")
    return [
        one
        for one, text in zip(listed, texts, strict=True)
        if str(text).strip(" \t\n.。").casefold() not in _NO_FINDING
    ]


def _object(reply: Any) -> dict[str, Any]:
    if isinstance(reply, dict):
        return reply
    if not isinstance(reply, str):
        raise ValueError(f"the reply is a {type(reply).__name__}, not a text")
    if len(reply) > MAX_REPLY:
        raise ValueError(f"the reply is longer than {MAX_REPLY:,} characters")
    start, end = reply.find("{"), reply.rfind("}")
    try:
        found = json.loads(reply[start : end + 1], object_pairs_hook=_once) if start >= 0 else None
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("the reply is no JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("the reply says something twice")
    return made


class PersonRater:
    """A person who is shown the output and asked for one problem after the other: o, t (△), x; then how many bonuses and penalties."""

    def __init__(
        self, *, ask: Callable[[str], str] = input, tell: Callable[[str], Any] = print, name: str = "person"
    ) -> None:
        """Ask somebody.

        Args:
            ask: shows a question and gives the line that is typed; what it raises comes through.
            tell: shows a text.
            name: what ratings call the person.
        """
        self.name = name
        self._ask = ask
        self._tell = tell

    def rate(self, document: Document, output: str, *, scope: str = "") -> Rating:
        """Ask until every problem is judged; Enter alone judges nothing."""
        tell = self._tell
        tell(f"\nDocument {visible(document.id)} ({visible(document.domain)})")
        if scope:
            tell(f"Scope: {visible(scope)}")
        tell(f"\n{visible(output)}\n")
        judgements: dict[str, Detection] = {}
        for number, problem in enumerate(document.problems, 1):
            of = f"{number} of {len(document.problems)}: {visible(problem.id)} ({visible(problem.category)}, {problem.severity})"
            tell(f"{of}\n{visible(problem.key)}" if problem.key else of)
            judgements[problem.id] = self._judgement()
        bonuses = self._count("Further findings that are true, useful and in scope, how many? ")
        penalties = self._count("Findings that are wrong or out of scope beyond doubt, how many? ")
        return Rating(judgements, bonuses, penalties, rater=self.name)

    def _judgement(self) -> Detection:
        while True:
            typed = self._ask("[o] detected  [t] partial  [x] missed > ").strip().lower()
            try:
                return Detection.PARTIAL if typed == "t" else Detection.of(typed)
            except ValueError:
                self._tell("Please type o, t or x.")

    def _count(self, question: str) -> int:
        while True:
            typed = self._ask(question).strip()
            if typed.isascii() and typed.isdigit() and len(typed) < 5:
                return int(typed)
            self._tell("Please type a number, 0 for none.")


def visible(text: str) -> str:
    """A text without signs that a terminal would obey or hide."""
    return printable(INVISIBLE.sub("", text), keep="\n\t", replace="�")
