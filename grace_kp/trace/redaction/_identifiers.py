"""Identifiers of people and machines: e-mail, IP and home paths, telephone, card, account and social security numbers.

Boundaries are those of ASCII: between Japanese words there are no blanks. Numbers with check digits are identifiers only where these
are right.
"""

from __future__ import annotations

import ipaddress
import re

from grace_kp.trace.redaction._rule import MARK, Rule


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


def _phone(match: re.Match[str]) -> str | None:
    digits = sum(character.isdigit() for character in match[0])
    return MARK.format("phone") if 9 <= digits <= 15 else None


def _address(match: re.Match[str]) -> str | None:
    """An IPv6 address; times, ratios and scopes of C++ look alike and are none."""
    text = match["address"]
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return None
    groups = [group for group in text.split(":") if group]
    if len(groups) < 3 and not (groups and len(groups[0]) >= 3) and text != "::1":
        return None
    return MARK.format("ip") if any(character.isdigit() for character in text) else None


def _card(match: re.Match[str]) -> str | None:
    """A card number: the length of its brand, and the right check digit."""
    digits = "".join(character for character in match[0] if character.isdigit())
    separators = {character for character in match[0] if not character.isdigit()}
    if len(separators) > 1 or len(set(digits)) < 2 or not luhn(digits):
        return None
    return MARK.format("card")


def _iban(match: re.Match[str]) -> str | None:
    text = match[0]
    compact = text.replace(" ", "").replace("-", "")
    length = IBAN_LENGTHS.get(compact[:2].upper(), 0)
    if len(compact) < length or not length:
        return None
    # The match may have taken the next word along.
    if not iban(compact[:length]):
        return None
    place = left = 0
    while left < length:
        left += text[place] not in " -"
        place += 1
    rest = text[place:]
    return MARK.format("iban") + rest if not rest[:1].isalnum() else None


def _ssn(match: re.Match[str]) -> str | None:
    """A US social security number: areas 000, 666 and 900 to 999, group 00 and serial 0000 are never given out."""
    area, group, serial = match["area"], match["group"], match["serial"]
    never = area in {"000", "666"} or area[0] == "9" or group == "00" or serial == "0000"
    return None if never else match["key"] + MARK.format("ssn")


IDENTIFIERS: tuple[Rule, ...] = (
    Rule(
        "email", "",
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,1024}+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])",
        needs=("@",),
    ),
    Rule(
        "card", "",
        r"(?<![A-Za-z0-9_.,-])(?<!\d )(?:(?:4\d{3}|5[1-5]\d{2}|2(?:2[2-9]|[3-6]\d|7[01])\d|6(?:011|4[4-9]\d|5\d{2}|2\d{2})|35(?:2[89]|[3-8]\d)|8[16]\d{2}|5[06-8]\d{2}|6[37]\d{2})[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}|3(?:0[0-5]|[689]\d)\d[ -]?\d{6}[ -]?\d{4}|4\d{12}|62\d{14,17})(?![A-Za-z0-9_]|[.,-]\d| \d)",
        needs=(), shapes=("0000",), replacement=_card,
    ),
    Rule("iban", "", r"(?<![A-Za-z0-9_])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?(?![A-Za-z0-9_])", needs=(), shapes=("AA00",), replacement=_iban),
    Rule("ssn", "", r"(?P<key>)(?<![A-Za-z0-9_.+-])(?<!\d )(?P<area>\d{3})-(?P<group>\d{2})-(?P<serial>\d{4})(?![A-Za-z0-9_]|[.-]\d)", needs=(), shapes=("000-00-0000",), replacement=_ssn),
    Rule("ssn", "", r"(?P<key>\b(?:ssn|social security(?: number| no\.?)?|social_security_number)\\{0,3}[\"']?\s{0,4}(?:[:=#]|is|was)?\s{0,4}\\{0,3}[\"']?)(?P<area>\d{3})[ -]?(?P<group>\d{2})[ -]?(?P<serial>\d{4})(?![A-Za-z0-9_])",
         needs=("ssn", "social"), flags=re.IGNORECASE, replacement=_ssn),
    Rule(
        "ip", "version 6",
        r"(?<![A-Za-z0-9_.:])(?P<address>(?=[0-9A-Fa-f:.]{2,45})(?:[0-9A-Fa-f]{0,4}:){2,8}[0-9A-Fa-f]{0,4}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3}|(?:\.\d{1,3}){3})?)"
        r"(?:%[A-Za-z0-9]{1,16})?(?![A-Za-z0-9_:])",
        needs=(":",), replacement=_address, word=r"[0-9A-Fa-f]{3}::|:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]",
    ),
    Rule(
        "ip", "version 4",
        r"(?<![A-Za-z0-9_.])(?!\d{1,3}\.0\.0\.0(?!\d))(?:(?:25[0-5]|2[0-4]\d|[01]?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|[01]?\d?\d)(?![A-Za-z0-9_]|\.\d)",
        needs=(".",), word=r"\d\.\d{1,3}\.\d{1,3}\.\d",
    ),
    Rule(
        "phone", "",
        r"(?<![A-Za-z0-9_.+-])(?:\+\d{7,15}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,4}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\(\d{2,5}\) ?\d{1,4}[ .-]\d{3,4}(?![A-Za-z0-9_]|[.-]\d)|0\d{1,4}[-‐–ー－]\d{1,4}[-‐–ー－]\d{3,4}(?![A-Za-z0-9_]|[.-]\d)"
        r"|\d{3}[.-]\d{3}[.-]\d{4}(?![A-Za-z0-9_]|[.-]\d)|0[5789]0\d{8}(?![A-Za-z0-9_]|[.-]\d))",
        needs=(), shapes=("+0", "(00", "0-0", "0‐0", "0–0", "0ー0", "0－0", "000.000.0000", "00000000000"), replacement=_phone,
    ),
    Rule(
        "filepath", "POSIX",
        r"(?<![A-Za-z0-9_.])(?<![A-Za-z]:)(?:file://)?(?:/mnt/[a-z])?/(?:home|Users|export/home|var/home)/[^\s,;/\"'<>|:`)}\]]{1,200}+"
        r"(?:/[^\s,;\]\"'<>|`)}]{0,1000}+)?",
        needs=("home/", "users/"), flags=re.IGNORECASE,
    ),
    Rule(
        "filepath", "Windows",
        r"(?<![A-Za-z0-9_.])[A-Za-z]:(?:\\{1,4}|/)(?:Users|Documents and Settings)(?:\\{1,4}|/)"
        r"(?:[^\\/\s,;:\"'<>|]{1,40}(?: [^\\/\s,;:\"'<>|]{1,40}){1,3}(?=[\\/]))?[^\s,;\]\"'<>|]{1,1000}+",
        needs=("users", "settings"), flags=re.IGNORECASE,
    ),
)  # fmt: skip
