"""The prompts of the evaluators, and the recognition of replies that merely echo the texts under judgement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grace_kp.asking import INVISIBLE, MAX_CHARS, Prompt, fenced
from grace_kp.confidence._prompts import PROMPT_VERSION, TEMPLATES, TITLES
from grace_kp.confidence._reply import Parsed, normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SOURCES = 40


def build(kind: str, language: str, texts: Sequence[tuple[str, str]], *, max_chars: int = MAX_CHARS) -> Prompt:
    """A prompt of this kind over these texts, each with its title (`question`, `answer`, `source`, …)."""
    return fenced(
        kind,
        language,
        TEMPLATES[kind, language],
        texts,
        version=PROMPT_VERSION,
        titles=TITLES[language],
        max_chars=max_chars,
    )


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
    return _NO_ESSENCE.sub("", INVISIBLE.sub("", normalised(INVISIBLE.sub("", text)))).casefold()


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
