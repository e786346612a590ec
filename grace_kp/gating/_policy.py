"""Policies as data: floors, timeouts, reviewers and thresholds by action name or glob, and which names look alike or are misspelt.

This module makes no decisions about calls. A glob also matches itself.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import logging
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from grace_kp.confidence import check_thresholds
from grace_kp.errors import GateError
from grace_kp.levels import InterventionLevel
from grace_kp.settings import GLOB_SET, check_name, is_glob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from grace_kp.confidence import Thresholds
    from grace_kp.gating._request import Reviewer


_SEPARATORS = re.compile(r"[\W_]+")
# ASCII characters with their look-alikes, after Unicode's confusables: Cyrillic, Greek, Armenian, Cherokee, Coptic, Lisu, symbols.
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
    """Return a name without details that people overlook: case, accents, compatibility forms, and look-alike characters."""
    visible = "".join(letter for letter in _UNSEEN.sub("", name) if unicodedata.category(letter) not in {"Cc", "Cf"})
    # Translated before and after: NFKC turns a few letters into letters that look different.
    plain = alike = unicodedata.normalize("NFKC", visible.translate(_ALIKE)).translate(_ALIKE).strip()
    if not plain.isascii():
        plain = alike = "".join(map(_without_extension, plain))
    for seen, meant in _ASCII_ALIKE:
        alike = alike.replace(seen, meant)
    return frozenset(_fold(each) for each in (plain, alike))


def _without_extension(letter: str) -> str:
    """Return an extended Latin letter without its extension, and the digit of any script as an ASCII one."""
    latin = _LATIN.fullmatch(unicodedata.name(letter, ""))
    return latin[1].lower() if latin and not letter.isascii() else str(unicodedata.digit(letter, letter))


def _fold(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold()).translate(_ALIKE)
    return "".join(
        {"Pd": "-", "Pc": "_"}.get(unicodedata.category(letter), letter)
        for letter in letters
        if not unicodedata.combining(letter)
    )


def looks_like(stated: str, name: str) -> bool:
    """Return whether an action only looks like the name of a policy: two of their `skeletons` match, and the names do not."""
    match = fnmatch.fnmatchcase if is_glob(stated) else str.__eq__
    return not matches(stated, name) and any(match(seen, own) for own in skeletons(stated) for seen in skeletons(name))


def is_equal_loosely(stated: str, name: str) -> bool:
    """Return whether a name and an action differ in case and separators alone."""
    loose = re.sub(r"[^\w*?\[\]!]+|_+", "", stated) if is_glob(stated) else _SEPARATORS.sub("", stated)
    return matches(loose.casefold(), _SEPARATORS.sub("", name).casefold())


def is_misspelt(stated: str, name: str) -> bool:
    """Return whether a name that matches nothing is meant for this action.

    They differ in case or separators alone; or, from five letters on, in up to two letters. A short glob is near to many names, so that one
    with fewer than eight may differ in one. Letters of other alphabets that look alike are not a mistake: see `looks_like`.
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

    In a glob, `*` matches any letters, and `?` and a set match any single letter.
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


_log = logging.getLogger("grace_kp.gate")
MOST_NAMES = 2_048
"""Names of actions whose policies are remembered."""
DENY = "deny"
_FLOORS = (*(level.value for level in InterventionLevel), DENY)
_RANKS = {floor: rank for rank, floor in enumerate((None, *_FLOORS))}
UNMEASURED = ("silent", "notify", "confirm")
"""Levels that can be stated for calls about which nothing was measured, mildest first."""


def check_timeout(timeout: object) -> None:
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise ValueError(f"timeout must be 0 or more seconds, or None, not {timeout!r:.60}")


def check_auto_proceed(setting: object) -> None:
    """Refuse a setting that only looks like a boolean: the string "no" is true in Python."""
    if not isinstance(setting, bool):
        raise ValueError(f"auto_proceed_on_timeout must be True or False, not {setting!r:.60}")


def groups_of(group: object) -> tuple[str, ...]:
    """Return the groups that an argument names, in alphabetical order; none for None."""
    if group is None:
        return ()
    named = [group] if isinstance(group, str) else group
    names = list(named) if isinstance(named, list | tuple | set | frozenset) else []
    if not names or not all(isinstance(name, str) and name.strip() == name != "" for name in names):
        raise ValueError(f"group must be the name of a group, or a list of such names, not {group!r:.60}")
    return tuple(sorted({str(name) for name in names}))


def checked_quorum(quorum: object) -> int:
    if isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= 100:
        raise ValueError(f"quorum must be a whole number from 1 to 100, not {quorum!r:.60}")
    return quorum


@dataclass(frozen=True, slots=True)
class Policy:
    """How strictly an action is gated, and who is asked about it.

    Raises:
        ValueError: an unknown floor, a timeout that is not a number of 0 or more, `auto_proceed_on_timeout` that is neither True nor False,
            or a group or quorum that cannot be used.
        GateError: an unknown name of an alarm.
        TypeError: `thresholds` is not a `Thresholds`.
    """

    floor: InterventionLevel | str | None = None
    """The mildest level that the action can have; `deny` blocks it without asking."""
    timeout: float | None = None
    """Seconds to wait for an answer; the gate's own when None."""
    reviewer: Reviewer | None = None
    """The reviewer to ask; the gate's own when None."""
    auto_proceed_on_timeout: bool | None = None
    """Run the action when time runs out without an answer. A refusal, a reviewer that fails and a missing reviewer never run it, nor does
    a timeout of a call with an alarm. Off when None."""
    thresholds: Thresholds | None = None
    """The scores at which the levels begin for this action; the gate's own when None."""
    group: str | Sequence[str] | None = None
    """Groups whose members may decide in an inbox; the groups of the `InboxReviewer` when None."""
    quorum: int | None = None
    """Number of people who must approve in an inbox; that of the `InboxReviewer` when None."""
    unmeasured: InterventionLevel | str | None = None
    """The level of a call about which nothing was measured: `confirm`, `notify` or `silent`; the runtime's when None."""
    alarms: Collection[str] | str = ()
    """The alarms about arguments that are looked for: `all`, `none`, or names of `ALARMS`. No other policy turns one of them off."""

    _version: str = field(default="", init=False, repr=False, compare=False)
    """The fingerprint, once it was asked for: a gate states it in each entry."""

    def __post_init__(self) -> None:
        if self.unmeasured is not None:
            if str(self.unmeasured) not in UNMEASURED:
                levels = ", ".join(UNMEASURED)
                raise ValueError(f"unmeasured must be one of {levels}, or None, not {self.unmeasured!r:.60}")
            object.__setattr__(self, "unmeasured", str(self.unmeasured))
        object.__setattr__(self, "alarms", alarm_names(self.alarms))
        if self.floor is not None:
            if str(self.floor) not in _FLOORS:
                raise ValueError(f"floor must be one of {', '.join(_FLOORS)}, not {self.floor!r}")
            object.__setattr__(self, "floor", str(self.floor))
        check_timeout(self.timeout)
        if self.thresholds is not None:
            check_thresholds(self.thresholds)
        if self.auto_proceed_on_timeout is not None:
            check_auto_proceed(self.auto_proceed_on_timeout)
        if self.group is not None:
            object.__setattr__(self, "group", groups_of(self.group))
        if self.quorum is not None:
            checked_quorum(self.quorum)

    @classmethod
    def of(cls, value: object) -> Self:
        """Return a policy unchanged, for a floor the policy that has it, and for a table its policy; None is the policy without a floor.

        Raises:
            ValueError: an unknown floor, or a table with anything but `floor` and `unmeasured`.
            TypeError: neither a policy, a floor nor a table.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, dict):
            if not value or None in value.values() or not {*value} <= {"floor", "unmeasured"}:
                names = ", ".join(map(str, value))
                raise ValueError(f"a table of a policy has floor, unmeasured or both, not {names!r:.60}")
            return cls(**value)
        if value is None or isinstance(value, str):
            return cls(floor=value)
        raise TypeError(f"a policy is a Policy or a floor, not {type(value).__name__}")

    @property
    def version(self) -> str:
        """Twelve-character fingerprint of the policy."""
        if self._version:
            return self._version
        who = "" if self.reviewer is None else type(self.reviewer).__qualname__
        text = f"{self.floor}|{self.timeout}|{who}|{self.auto_proceed_on_timeout}|{self.thresholds}"
        if self.group is not None or self.quorum is not None:
            text += f"|{self.group}|{self.quorum}"
        if self.unmeasured is not None:
            text += f"|unmeasured={self.unmeasured}"
        if self.alarms:
            text += f"|alarms={self.alarms}"
        object.__setattr__(self, "_version", hashlib.sha256(text.encode()).hexdigest()[:12])
        return self._version

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of this policy; none where it leaves them to the reviewer."""
        return groups_of(self.group)

    @property
    def denies(self) -> bool:
        """Whether the action is blocked without asking."""
        return self.floor == DENY

    def at_least(self, floor: Policy | InterventionLevel | str | None) -> Policy:
        """Return this policy with the stricter of its floor and `floor`."""
        return replace(self, floor=_stricter(self.floor, Policy.of(floor).floor))

    def combined(self, other: Policy) -> Policy:
        """Return both policies at once, which is never milder than either.

        The stricter floor and `unmeasured`, the alarms of both, the higher quorum and the higher threshold of each level hold, and only groups
        that both name may decide. The action runs without an answer only where each policy allows it; one whose floor and `unmeasured` are at most `notify`
        and that states nothing else leaves that to the other. Then the longer timeout holds, else the shorter. The reviewer is that of `self`, or of
        `other` where `self` has none; two inboxes become one with the stricter of their settings.

        Raises:
            ValueError: both name groups, and none in common, so that no person could decide.
        """
        if Policy() in (self, other):
            return other if self == Policy() else self
        asking = [policy.auto_proceed_on_timeout for policy in (self, other) if not policy._leaves_asking_open]
        proceeds = None if not any(asking) else all(asking)
        timeouts = [policy.timeout for policy in (self, other) if policy.timeout is not None]
        return Policy(
            floor=_stricter(self.floor, other.floor),
            timeout=(max if proceeds else min)(timeouts, default=None),
            reviewer=_reviewer_of_both(self.reviewer, other.reviewer),
            auto_proceed_on_timeout=False if proceeds is None and False in asking else proceeds,
            thresholds=_stricter_thresholds(self.thresholds, other.thresholds),
            group=common_groups(self.groups, other.groups) or None,
            quorum=max(self.quorum or 0, other.quorum or 0) or None,
            unmeasured=stricter_unmeasured(self.unmeasured, other.unmeasured),
            alarms={*self.alarms, *other.alarms},
        )

    @property
    def _leaves_asking_open(self) -> bool:
        never_asks = {self.floor, self.unmeasured} <= {None, "silent", "notify"}
        return never_asks and replace(self, floor=None, unmeasured=None, alarms=()) == Policy()


def alarm_names(stated: object) -> tuple[str, ...]:
    """Return the names of alarms in the order of `ALARMS`: of `all`, `none`, or a collection of names."""
    if stated == "none" or stated == ():
        return ()
    from grace_kp.confidence import ALARMS  # its module compiles patterns, which most gates do not need

    named = ALARMS if stated == "all" else stated
    if isinstance(named, str) or not isinstance(named, Collection) or not all(name in ALARMS for name in named):
        raise GateError(f'alarms must be "all", "none" or a tuple of names such as ("beside",), not {stated!r:.60}')
    return tuple(name for name in ALARMS if name in named)


def stricter_unmeasured(*stated: str | None) -> str | None:
    """Return the strictest of the levels that are stated; None where none is."""
    return max((level for level in stated if level is not None), key=UNMEASURED.index, default=None)


def _stricter_thresholds(first: Thresholds | None, second: Thresholds | None) -> Thresholds | None:
    if first is None or second is None:
        return first or second
    highest = {level: max(getattr(first, level), getattr(second, level)) for level in ("silent", "notify", "confirm")}
    return replace(first, **highest)


def _stricter(first: str | None, second: str | None) -> str | None:
    return max(first, second, key=_RANKS.__getitem__)


def _reviewer_of_both(first: Reviewer | None, second: Reviewer | None) -> Reviewer | None:
    if first is None or second is None:
        return second if first is None else first
    combined = getattr(first, "combined", None)
    return combined(second) if callable(combined) and type(first) is type(second) else first


def common_groups(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups that are left where two places name groups; none where neither does."""
    if not first or not second:
        return first or second
    common = tuple(sorted({*first} & {*second}))
    if not common:
        raise ValueError(
            f"two policies of the action name the groups {', '.join(first)} and {', '.join(second)}, which have none in common, "
            "so no person could decide; name a common group in both"
        )
    return common


class PolicySet:
    """Policies by action name or glob, from one place or several, such as a program and a file.

    In one place an exact name wins over globs, a longer glob over a shorter one, then the stricter. Entries of several places for one action
    are combined, see `Policy.combined`; the first place has the last word about reviewers.

    Raises:
        ValueError: a name can match no action, or an entry is neither a policy nor a floor; the message names it. Or two places name
            groups for one action that have none in common.
        TypeError: a place is not a mapping.
    """

    def __init__(self, *places: Mapping[str, Policy | str | dict[str, str]] | None) -> None:
        self._places = [_check_entries(entries) for entries in places if entries is not None]
        self.names = tuple(dict.fromkeys(name for place in self._places for name in place))
        self._stated: dict[str, Policy | None] = {}
        self._warned: set[str] = set()
        for name in self.names:
            self.entry_for(name)  # groups without a common one are an error now, not when the action is called

    def entry_for(self, name: str) -> Policy | None:
        """Return what the places state for the action; None where none has an entry that matches."""
        return _all_of(_entry(place, name) for place in self._places)

    def for_action(self, name: str, own: Policy | None = None) -> Policy:
        """Return the policy of the action: its own, combined with the entry that matches."""
        return _all_of((self.entry_for(name), own)) or Policy()

    def stated_for(self, name: str, others: Callable[[], Iterable[str]] = tuple) -> Policy | None:
        """Return what `entry_for` returns, combined with entries that the action escapes by its spelling alone, with a warning.

        Those are entries that it only looks like (case, accents, compatibility forms, letters that look like others), unless its exact name
        has an entry; and entries that match no action so far and differ in separators alone. An entry that differs in up to two letters
        leads to a warning, because the action that it is for may not be defined yet.
        """
        if name not in self._stated:
            alike = [entry for place in self._places for entry in _alike(place, name)]
            if alike:
                names = ", ".join(dict.fromkeys(repr(stated) for stated, _ in alike))
                self._warn(name, f"the action {name!r} looks like {names} and gets the same policy")
            known = [*others(), *self._stated]
            for stated in self.misspelt([name]):
                if stated in dict(alike) or any(matches(stated, other) for other in known):
                    continue
                self._warn(stated, f"the policy {stated!r} matches no action so far; did you mean {name!r}?")
                if is_equal_loosely(stated, name):
                    alike.append((stated, self.for_action(stated)))
            if len(self._stated) >= MOST_NAMES:  # a model may call tools by any name
                self._stated.clear()
            self._stated[name] = _all_of((self.entry_for(name), *(policy for _, policy in alike)))
        return self._stated[name]

    def misspelt(self, names: Collection[str]) -> dict[str, str]:
        """Return the entries that match none of these actions and are spelt nearly like one, which has no entry in their place, each with it."""
        near = [
            (stated, nearest(stated, [each for each in names if each not in place and is_misspelt(stated, each)]))
            for place in self._places
            for stated in place
            if not any(matches(stated, name) for name in names)
        ]
        return {stated: name for stated, name in near if name is not None}

    def unmatched(self, names: Iterable[str] = ()) -> dict[str, str | None]:
        """Return the entries that match none of these actions, or of those looked up so far, each with the nearest one, if any is near."""
        known = sorted({*names, *self._stated})
        return {entry: nearest(entry, known) for entry in self.names if not any(matches(entry, name) for name in known)}

    def _warn(self, about: str, message: str) -> None:
        if about not in self._warned and len(self._warned) < MOST_NAMES:
            self._warned.add(about)
            _log.warning(message)


def _all_of(policies: Iterable[Policy | None]) -> Policy | None:
    stated = [policy for policy in policies if policy is not None]
    return functools.reduce(Policy.combined, stated) if stated else None


def _alike(place: Mapping[str, Policy], name: str) -> list[tuple[str, Policy]]:
    """Return the entries of one place that an action looks like but does not match.

    None where an entry has its exact name. An entry that resembles another entry which does match the action is left out.
    """
    own = [stated for stated in place if matches(stated, name)]
    if name in own:
        return []
    return [
        (stated, policy)
        for stated, policy in place.items()
        if looks_like(stated, name) and not any(looks_like(stated, each) for each in own)
    ]


def _check_entries(entries: Mapping[str, Policy | str | dict[str, str]]) -> dict[str, Policy]:
    if not isinstance(entries, Mapping):
        raise TypeError(f"policies are a mapping of action name to policy or floor, not {type(entries).__name__}")
    checked: dict[str, Policy] = {}
    for name, value in entries.items():
        try:
            check_name(name)
            if value is None:
                raise TypeError(
                    'None states no policy; write a floor such as "confirm", `Policy()` to gate the action on its confidence alone, or leave it out'
                )
            checked[name] = Policy.of(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"policy {name!r:.100}: {error}") from None
    return checked


def _entry(place: Mapping[str, Policy], name: str) -> Policy | None:
    if name in place:
        return place[name]
    matching = [
        (sum(character not in "*?[]" for character in glob), _RANKS[policy.floor], policy)
        for glob, policy in place.items()
        if is_glob(glob) and matches(glob, name)
    ]
    return max(matching, key=lambda match: match[:2])[2] if matching else None
