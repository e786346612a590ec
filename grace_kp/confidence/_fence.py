"""Prompts in which the texts under judgement are fenced off as data, and the recognition of replies that merely echo them.

Each text stands between marker lines with a code that nobody who wrote the text can know. Before that it loses its secrets and
identifiers (it may leave the machine), its invisible signs, and whatever looks like a marker; and it is cut to a bound.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.confidence._prompts import CUT, PROMPT_VERSION, TEMPLATES, TITLES
from grace_kp.confidence._reply import Parsed, normalised
from grace_kp.trace._redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_CHARS = 24_000
"""Characters kept of each text, two thirds from its beginning and one from its end."""
MAX_SOURCES = 40
_LARGE = 1_000_000
_SECRET = secrets.token_bytes(16)
# Zero-width signs, directions of writing, variation selectors, and the tags that spell invisible ASCII.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Three of these, with blanks between them or without, could be taken for the beginning of a marker.
_MARKER = re.compile(r"(?:[<＜﹤‹«⟨〈《≪⋘ᐸ❮˂]\s?){3,}|⋘")
_JAPANESE = re.compile("[\u3041-\u30ff\uff66-\uff9f]")
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a judge is asked, with what is needed to read its reply."""

    text: str
    """The prompt itself."""
    kind: str
    """`self_evaluation`, `coverage`, `both` or `step`."""
    language: str
    """`en` or `ja`."""
    code: str
    """The code of its markers; a reply that repeats it is an echo."""
    material: tuple[str, ...]
    """The fenced texts as they stand in the prompt."""
    key: str
    """Identifies the question whatever the code: kind, version, language and texts."""


def language_of(text: str) -> str:
    """`ja` for a text with kana, or of Chinese characters alone; else `en`."""
    sample = text[:4_000]
    if _JAPANESE.search(sample) or (_HAN.search(sample) and not re.search("[A-Za-z]", sample)):
        return "ja"
    return "en"


def build(kind: str, language: str, texts: Sequence[tuple[str, str]], *, max_chars: int = MAX_CHARS) -> Prompt:
    """A prompt of this kind over these texts, each with its title (`question`, `answer`, `source`, …)."""
    titles = TITLES[language]
    clean = [(title, _clean(text, language, max_chars)) for title, text in texts]
    digest = hashlib.blake2b(f"{kind}\n{PROMPT_VERSION}\n{language}\n".encode(), digest_size=20)
    for title, text in clean:
        digest.update(f"{title} {len(text)}\n".encode() + text.encode("utf-8", "replace"))
    key = digest.hexdigest()
    code = hashlib.blake2b(key.encode(), key=_SECRET, digest_size=6).hexdigest()
    parts = [TEMPLATES[kind, language].format(code=code)]
    counts: dict[str, int] = {}
    for title, text in clean:
        counts[title] = counts.get(title, 0) + 1
        name = titles[title] + (f" {counts[title]}" if title == "source" else "")
        parts.append(f"<<<{name} {code}>>>\n{text}\n<<<{titles['end']} {name} {code}>>>")
    return Prompt("\n\n".join(parts), kind, language, code, tuple(text for _, text in clean), key)


def _clean(text: str, language: str, max_chars: int) -> str:
    text = str.__str__(text)
    if len(text) > _LARGE:
        text = f"{text[: _LARGE // 2]}\n{text[-_LARGE // 2 :]}"  # what is left out by the cut below in any case
    # Before the cut, which may go right through a secret and leave a half that is not recognised.
    text = redact_text(_CONTROL.sub(" ", _INVISIBLE.sub("", text.replace("\r\n", "\n"))), identifiers=True)
    if len(text) > max_chars:
        head = max_chars * 2 // 3
        tail = max_chars - head
        text = f"{text[:head]}\n{CUT[language].format(f'{len(text) - max_chars:,}')}\n{text[-tail:]}"
    return _MARKER.sub("‹‹", text)


def echoed(parsed: Parsed, prompt: Prompt) -> bool:
    """Whether the score of a reply stands in words copied from the texts under judgement.

    Compared are letters, digits and what belongs to a number; so no frame, blank or sign around a copy hides it. A score counts when at
    least one of its places is the judge's own. An object counts as copied when all of it is, a figure when the words right before or
    right after it are, or when a whole line of a text with that figure stands there.
    """
    if prompt.code in parsed.text:
        return True
    if not parsed.places:
        return False
    texts = [_essence(text) for text in prompt.material]
    lines = {_essence(line) for text in prompt.material for line in text.split("\n") if len(line) <= _SHORT_LINE}
    figures = {line for line in lines if any(sign.isdigit() for sign in line)}
    return all(_copied(parsed.text, start, end, "\n".join(texts), figures) for start, end in parsed.places)


_BESIDE = 4
_SHORT_LINE = 200
_NO_ESSENCE = re.compile(r"[^\w.%/]|_|\.(?!\d)")


def _essence(text: str) -> str:
    return _NO_ESSENCE.sub("", _INVISIBLE.sub("", normalised(_INVISIBLE.sub("", text)))).casefold()


def _copied(reply: str, start: int, end: int, material: str, lines: set[str]) -> bool:
    piece = _essence(reply[start:end])
    if reply[start:end].startswith("{"):
        return piece in material
    label = re.match(r"[^\d.]*", piece)
    core = piece[label.end() :] if label is not None else piece
    before = _essence(reply[:start]) + piece[: len(piece) - len(core)]
    after = _essence(reply[end:])
    if len(before) >= _BESIDE and before[-_BESIDE:] + core in material:
        return True
    if len(after) >= _BESIDE and core + after[:_BESIDE] in material:
        return True
    around = before[-_SHORT_LINE:] + core + after[:_SHORT_LINE]
    return any(core in line and line in around for line in lines)
