"""Recognise replies that merely echo the texts under judgement, so that a text cannot supply its own score."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grace_kp.judge._fence import INVISIBLE
from grace_kp.judge._reply import Parsed, normalised

if TYPE_CHECKING:
    from grace_kp.judge._fence import Prompt

OWN_FIGURES = frozenset({"factors"})
"""Titles of texts with our own figures. They are not under judgement, so a reply that agrees with a figure is not an echo."""


def echoed(parsed: Parsed, prompt: Prompt) -> bool:
    """Return whether the score of a reply is copied from the texts under judgement.

    Only letters, digits and the characters of a number are compared, so no frame or blank around a copy hides it. A score is the judge's
    own when at least one of its places is. An object is copied when all of it is. A figure is copied when the words right before or
    right after it are, or when it stands in a copied line.
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
    plain = normalised(INVISIBLE.sub("", text)).replace(_JOINER, "")
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
