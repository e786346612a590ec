"""Names of actions as policies state them: which look alike, and which are misspelt. A glob also matches its own text."""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from typing import TYPE_CHECKING

from grace_kp.settings import GLOB_SET, is_glob

if TYPE_CHECKING:
    from collections.abc import Iterable

_SEPARATORS = re.compile(r"[\W_]+")
# Each ASCII letter or digit with those that look like it, after Unicode's confusables: Cyrillic, Greek, Armenian, Cherokee, Coptic, Lisu, symbols.
_GROUPS = (
    "aаАΑαɑᎪⲁꓮ bВвΒβᏏᏴⲃꓐЬьƅ cСсϲϹⲥᏟꓚ¢ dԁᎠᏧꓓ eЕеЄєΕεⲉᎬꓰ℮€ fꓝ gցᏀᏳꓖ₲ hНнһΗհᎻᏂⲏꓧ iіїιɩᎥⲓ IІЇΙⲒꓲ jЈјᎫꓙ kКкΚκᏦⲕꓗ₭ĸ lӏӀᏞꓡƖǀ∣׀וןᛁⵏ mМмΜᎷⲙꓟ₥ "
    "nпΝηոⲛꓠ₦ oОоΟοօσഠଠဝჿסهⲟꓳ٥۵〇○◯ pРрΡρᏢⲣꓑ⍴ᑭ qԛզ rгᎡᏒᎱꓣ sЅѕςᏕᏚꓢ tТтΤτᎢⲧꓔ₮ uυսꓴ vѴѵνᏙꓦ wԜԝѡωᎳᏔꓪ₩ xХхΧχⲭꓫ×᙮ yУуҮүΥγᎩᎽⲩꓬɣ zΖᏃꓜ 2ƧƨϨϩ 3ЗзƷʒȜȝ 4Чч 6б 8Ȣȣ -− _ˍ /∕⁄ :∶꞉"
)
_ALIKE = str.maketrans({letter: group[0] for group in _GROUPS.split() for letter in group[1:]})
_LATIN = re.compile(
    r"(?:NEGATIVE \w+ )?LATIN (?:(?:SMALL|CAPITAL) LETTER|LETTER SMALL CAPITAL) (?:DOTLESS |SCRIPT |BARRED )?([A-Z])(?: WITH .*)?"
)
# Variation selectors, fillers and enclosing marks; control and format characters are found by their category.
_UNSEEN = re.compile(
    "[\u034f\u0488\u0489\u115f\u1160\u17b4\u17b5\u180b-\u180f\u20dd-\u20e0\u20e2-\u20e4\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_ASCII_ALIKE = (("I", "l"), ("1", "l"), ("0", "o"), ("rn", "m"), ("vv", "w"))


def matches(stated: str, name: str) -> bool:
    """Return whether a policy stated under a name or glob is that of an action."""
    return stated == name or (is_glob(stated) and fnmatch.fnmatchcase(name, stated))


def skeletons(name: str) -> frozenset[str]:
    """Return a name without what people overlook: case, accents, compatibility forms, and letters and digits that look like others."""
    visible = "".join(letter for letter in _UNSEEN.sub("", name) if unicodedata.category(letter) not in {"Cc", "Cf"})
    # NFKC turns a few letters into others than those that they look like.
    plain = alike = unicodedata.normalize("NFKC", visible.translate(_ALIKE)).translate(_ALIKE).strip()
    if not plain.isascii():
        plain = alike = "".join(map(_plain, plain))
    for seen, meant in _ASCII_ALIKE:
        alike = alike.replace(seen, meant)
    return frozenset(_folded(each) for each in (plain, alike))


def _plain(letter: str) -> str:
    """Return an extended Latin letter without its extension, and the digit of any script as an ASCII one."""
    latin = _LATIN.fullmatch(unicodedata.name(letter, ""))
    return latin[1].lower() if latin and not letter.isascii() else str(unicodedata.digit(letter, letter))


def _folded(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold()).translate(_ALIKE)
    return "".join(
        {"Pd": "-", "Pc": "_"}.get(unicodedata.category(letter), letter)
        for letter in letters
        if not unicodedata.combining(letter)
    )


def looks_like(stated: str, name: str) -> bool:
    """Return whether an action only looks as if it were that of a policy: two of their `skeletons` match, and they do not."""
    match = fnmatch.fnmatchcase if is_glob(stated) else str.__eq__
    return not matches(stated, name) and any(
        match(seen, other) for other in skeletons(stated) for seen in skeletons(name)
    )


def is_equal_loosely(stated: str, name: str) -> bool:
    """Return whether a name and an action differ in case and separators alone."""
    loose = re.sub(r"[^\w*?\[\]!]+|_+", "", stated) if is_glob(stated) else _SEPARATORS.sub("", stated)
    return matches(loose.casefold(), _SEPARATORS.sub("", name).casefold())


def is_misspelt(stated: str, name: str) -> bool:
    """Return whether a name that matches nothing is meant for this action.

    They differ in case or separators alone; or, from five letters on, in up to two letters. A short glob is near to many names, so that one
    with fewer than eight may differ in one. Letters of other alphabets that look alike are no mistake: see `looks_like`.
    """
    if is_equal_loosely(stated, name):
        return True
    if looks_like(stated, name) and not (stated + name).isascii():
        return False
    letters = len(_SEPARATORS.sub("", stated))
    return distance(stated, name) <= (0 if letters < 5 else 1 if is_glob(stated) and letters < 8 else 2)


def nearest(stated: str, names: Iterable[str]) -> str | None:
    """Return the name that is nearest to the name of a policy; None where none is near."""
    edits, name = min(((distance(stated, name), name) for name in names), default=(0, ""))
    return name if name and edits <= max(2, len(stated) // 2) else None


def distance(stated: str, name: str) -> int:
    """Return the edit distance between two names, ignoring case. Exchanging two neighbouring letters counts as one edit.

    In a glob, `*` stands for any letters, and `?` and a set for any single letter.
    """
    wild = is_glob(stated)
    pattern, text = (GLOB_SET.sub("?", stated) if wild else stated).casefold(), name.casefold()
    earlier, row = [0], list(range(len(text) + 1))
    for number, part in enumerate(pattern):
        any_letters = wild and part == "*"
        before, row = row, [row[0] + (not any_letters)]
        for column, letter in enumerate(text):
            if any_letters:
                row.append(min(before[column + 1], row[column]))
                continue
            same = part == letter or (wild and part == "?")
            edits = [before[column + 1] + 1, row[column] + 1, before[column] + (not same)]
            if number and column and pattern[number - 1] == letter and part == text[column - 1]:
                edits.append(earlier[column - 1] + 1)
            row.append(min(edits))
        earlier = before
    return row[-1]
