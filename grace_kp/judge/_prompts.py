"""The prompts of the evaluators, in which the texts under judgement are fenced off as data, and replies that only repeat them.

Each text is between marker lines with a code that its author cannot know. Before that, secrets and identifiers are redacted (the
text may leave the machine), invisible characters and anything like a marker are removed, and the text is cut to a bound. The
instructions name no figure, so that an echo of them cannot be read as a score. The version changes with any of their texts.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from grace_kp.judge._reply import Parsed, normalise
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Sequence


TEXTS = tomllib.loads(files("grace_kp.judge").joinpath("prompts.toml").read_text(encoding="utf-8"))
"""What a judge is told, by language; `{code}` is a placeholder."""
LANGUAGES = tuple(TEXTS)
RULES: dict[str, str] = {language: texts["rules"] for language, texts in TEXTS.items()}
"""The part of every prompt about its fences."""
MAX_CHARS = 24_000
"""Characters kept of each text, two thirds from its beginning and one from its end."""
_LARGE = 1_000_000
_SECRET = secrets.token_bytes(16)
# Zero-width characters, text directions, variation selectors, and the tags that spell invisible ASCII.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Three of these, with or without blanks between them, look like the beginning of a marker.
_MARKER = re.compile(r"(?:[<＜﹤‹«⟨〈《≪⋘ᐸ❮˂]\s?){3,}|⋘")
_JAPANESE = re.compile("[\u3041-\u30ff\uff66-\uff9f]")
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, with what is needed to read the reply to it."""

    text: str
    """The text that is sent."""
    code: str
    """The code of the markers; a reply that repeats it is an echo."""
    material: tuple[str, ...]
    """The texts inside the fences."""
    titles: tuple[str, ...]
    """The title of each fenced text, such as `question` or `factors`."""
    key: str
    """Digest of kind, version, language and texts; independent of the code."""


def language_of(text: str) -> str:
    """Return `ja` for a text with kana, or with Chinese characters and no Latin letters; else `en`."""
    sample = text[:4_000]
    if _JAPANESE.search(sample) or (_HAN.search(sample) and not re.search("[A-Za-z]", sample)):
        return "ja"
    return "en"


def fence_texts(
    kind: str,
    language: str,
    template: str,
    texts: Sequence[tuple[str, str]],
    *,
    version: str,
    titles: dict[str, str],
    max_chars: int = MAX_CHARS,
) -> Prompt:
    """Build a prompt over texts, each with its title.

    Args:
        kind: the kind of judgement.
        language: `en` or `ja`.
        template: the instructions; `{code}` is filled in.
        texts: titles and texts.
        version: changes with the wording of the template.
        titles: how markers write a title. Several sources are numbered.
        max_chars: characters kept of each text.
    """
    clean = [(title, _clean(text, language, max_chars)) for title, text in texts]
    digest = hashlib.blake2b(f"{kind}\n{version}\n{language}\n".encode(), digest_size=20)
    for title, text in clean:
        digest.update(f"{title} {len(text)}\n".encode() + text.encode("utf-8", "replace"))
    key = digest.hexdigest()
    code = hashlib.blake2b(key.encode(), key=_SECRET, digest_size=6).hexdigest()
    parts = [template.replace("{code}", code)]
    counts: dict[str, int] = {}
    for title, text in clean:
        counts[title] = counts.get(title, 0) + 1
        name = titles[title] + (f" {counts[title]}" if title == "source" else "")
        parts.append(f"<<<{name} {code}>>>\n{text}\n<<<{TEXTS[language]['end']} {name} {code}>>>")
    return Prompt(
        "\n\n".join(parts),
        code,
        tuple(text for _, text in clean),
        tuple(title for title, _ in clean),
        key,
    )


def _clean(text: str, language: str, max_chars: int) -> str:
    text = str.__str__(text)
    if len(text) > _LARGE:
        text = f"{text[: _LARGE // 2]}\n{text[-_LARGE // 2 :]}"  # the cut below drops the middle in any case
    # Before the cut, which may split a secret and leave a half that is not recognised.
    text = redact_text(_CONTROL.sub(" ", INVISIBLE.sub("", text.replace("\r\n", "\n"))), identifiers=True)
    if len(text) > max_chars:
        head = max_chars * 2 // 3
        tail = max_chars - head
        mark = TEXTS[language]["cut"].format(f"{len(text) - max_chars:,}")
        text = f"{text[:head]}\n{mark}\n{text[-tail:]}"
    return _MARKER.sub("‹‹", text)


OWN_FIGURES = frozenset({"factors"})
"""Titles of texts with our own figures. They are not under judgement, so a reply that agrees with a figure is not an echo."""


def is_echo(parsed: Parsed, prompt: Prompt) -> bool:
    """Return whether the score of a reply is copied from the texts under judgement.

    Only letters, digits and the characters of a number are compared, so no frame or blank around a copy hides it. A score is the judge's
    own when at least one of its places is. An object is copied when all of it is. A figure is copied when the words right before or
    right after it are, or when it is in a copied line.
    """
    if prompt.code in parsed.text:
        return True
    if not parsed.places:
        return False
    judged = [text for title, text in zip(prompt.titles, prompt.material, strict=True) if title not in OWN_FIGURES]
    texts = [_essence(text) for text in judged]
    lines = {_essence(line) for text in judged for line in text.split("\n") if len(line) <= _SHORT_LINE}
    figures = {line for line in lines if any(character.isdigit() for character in line)}
    return all(_is_copied(parsed.text, start, end, "\n".join(texts), figures) for start, end in parsed.places)


_BESIDE = 4
_SHORT_LINE = 200
_JOINER = "\u2040"
"""Replaces an underscore inside a word, so that `avg_score` does not contain `score`."""
_WITHIN_A_WORD = re.compile(r"(?<=[^\W\d_])_(?=[^\W\d_])")
_OF_A_NUMBER = frozenset("0123456789.")
_GOES_ON = re.compile(r"\.?\d")
_NO_ESSENCE = re.compile(rf"[^\w.%/{_JOINER}]|_|\.(?!\d)")


def _essence(text: str) -> str:
    plain = normalise(INVISIBLE.sub("", text)).replace(_JOINER, "")
    return _NO_ESSENCE.sub("", INVISIBLE.sub("", _WITHIN_A_WORD.sub(_JOINER, plain))).casefold()


def _is_copied(reply: str, start: int, end: int, material: str, lines: set[str]) -> bool:
    piece = _essence(reply[start:end])
    if reply[start:end].startswith("{"):
        return _is_contained(piece, material)
    label = re.match(r"[^\d.]*", piece)
    core = piece[label.end() :] if label is not None else piece
    before = _essence(reply[:start]) + piece[: len(piece) - len(core)]
    after = _essence(reply[end:])
    if len(before) >= _BESIDE and _is_contained(before[-_BESIDE:] + core, material):
        return True
    if len(after) >= _BESIDE and _is_contained(core + after[:_BESIDE], material):
        return True
    around = before[-_SHORT_LINE:] + core + after[:_SHORT_LINE]
    return any(core in line and line in around for line in lines)


def _is_contained(piece: str, material: str) -> bool:
    """Return whether the material contains the piece with whole figures: a 0 is not copied from 0.85, nor a 5 from 15."""
    at = material.find(piece)
    while at >= 0 and piece:
        end = at + len(piece)
        before = material[at - 1] if at else ""
        starts_whole = before not in _OF_A_NUMBER if piece[0].isdigit() else before != _JOINER
        ends_whole = not piece[-1].isdigit() or end == len(material) or not _GOES_ON.match(material, end)
        if starts_whole and ends_whole:
            return True
        at = material.find(piece, at + 1)
    return False


PROMPT_VERSION = "2026-11-1"
"""Part of every cache key: a judgement by another wording is another judgement."""


def _templates(language: str, texts: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return the instructions in one language, for each question and for the first two at once."""
    ask, questions, rules = texts["ask"], texts["questions"], texts["rules"]
    blank = " " if language == "en" else ""
    templates = {
        (kind, language): f"{ask}{blank}{text}\n\n{rules}\n\n{texts['form']}" for kind, text in questions.items()
    }
    asked = f"{texts['first']}{questions['self_evaluation']}\n\n{texts['second']}{questions['coverage']}"
    return templates | {("both", language): f"{ask}\n\n{asked}\n\n{rules}\n\n{texts['both']}"}


TEMPLATES = {key: text for language, texts in TEXTS.items() for key, text in _templates(language, texts).items()}
"""By kind and language; `{code}` is the only placeholder."""


def build_prompt(kind: str, language: str, texts: Sequence[tuple[str, str]], *, max_chars: int = MAX_CHARS) -> Prompt:
    """Build a prompt of this kind over texts with their titles (`question`, `answer`, `source`, …)."""
    template, titles = TEMPLATES[kind, language], TEXTS[language]["titles"]
    return fence_texts(kind, language, template, texts, version=PROMPT_VERSION, titles=titles, max_chars=max_chars)
