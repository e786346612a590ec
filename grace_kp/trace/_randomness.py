"""Whether a string looks generated: words, names and paths change their kind of character rarely, keys change it all the time."""

from __future__ import annotations

import re

_CHANGE = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]")


def changes(text: str) -> int:
    """Count the places where lower case, upper case and digits follow each other; the start of a capitalised word is none."""
    return len(_CHANGE.findall(text))


def looks_random(text: str, least: int = 16) -> bool:
    """Whether the text has at least `least` characters and looks generated.

    A text with digits needs a change of character kind in every seventh place, a text without any in every fourth.
    """
    if len(text) < least:
        return False
    share = changes(text) / len(text)
    return share >= (0.15 if any(character.isdigit() for character in text) else 0.25)


def luhn(digits: str) -> bool:
    """Whether the check digit of a card number is right."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def iban(text: str) -> bool:
    """Whether an IBAN without blanks has the length of its country and the right check digits (mod 97)."""
    text = text.upper()
    if len(text) != IBAN_LENGTHS.get(text[:2], 0):
        return False
    return int("".join(str(int(character, 36)) for character in text[4:] + text[:4])) % 97 == 1


# ISO 13616 register: characters of an IBAN by country.
IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU XK", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MN MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
