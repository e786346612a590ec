"""Where the arguments of an action come from: an index over what an agent has seen, and the alarms that follow from it.

The index grows with the run and reads each text once. A lookup compares values: case, spacing, the notation of numbers and dates, and the punctuation
inside of identifiers do not matter. Nothing here raises, whatever the texts hold. The lack of an alarm does not show that a value is right:
an attacker who knows these rules can word a text so that none is raised.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, get_args

from grace_kp.confidence._argument_values import (
    LEAST_SQUEEZED,
    MAX_LEAVES,
    call_digest,
    is_everyday,
    leaves_of,
    normal_form,
    notations_in,
    number_keys,
    parts_of,
    path_text,
    shape_of,
    squeeze,
    stands_alone,
    text_of,
    words_of,
)
from grace_kp.confidence._instructions import ENOUGH, WEIGHTS, find_instructions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from grace_kp.confidence._argument_values import Shape

    _Sighting = tuple["Place", "_Piece"]
    Occurrence = tuple[int, int, int]
    """Number of a piece, start and end in its normal form."""

Kind = Literal["user", "policy", "schema", "field", "text", "argument", "nowhere", "unknown"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Sources of a value, the strongest first; that of an argument is the strongest of its places."""
AlarmName = Literal["beside", "nowhere", "repeat"]
ALARMS: tuple[AlarmName, ...] = get_args(AlarmName)

MAX_TOTAL = 4_000_000
"""Characters of a run that are indexed; what follows is a gap."""
MAX_PIECE, OVERLAP = 16_000, 400
"""A longer text is indexed in overlapping pieces."""
_OWN = frozenset({"argument", "unknown"})
"""Sources that hold what the agent, or one inside of a tool, wrote."""
_CONSTANTS = frozenset({"default", "const", "enum", "examples"})
"""Keys of a schema that hold values."""
MAX_VALUES = 100
"""Values of an action that are looked up."""
MAX_PLACES = 12
"""Places that are listed of a value."""
MAX_READ, MAX_IN_PIECE, MAX_FOUND = 200, 40, 200
"""Pieces that are read for a value, its places in each, and in all."""
MAX_PHRASE, MAX_TEXT = 300, 6_000
"""Characters of a constant, and of a value that is looked up."""
MAX_NAME = 8
"""Words of a value that may name something. A longer text that is found nowhere was composed by the agent."""
BEFORE, AFTER = 250, 120
"""Characters before and after a value that count as beside it."""
_CUT = re.compile(
    r"\[(?:redacted:|cut: |not captured\]|sealed\]|hidden\])|\.\.\. [\d,]+ more\b|<[\w.]+: (?:not shown|cannot be read|[\d,]+ bytes)"
)
"""Marks, in normal form, of a text from which something was removed, by redaction or because it was too long."""
_QUOTED, _QUOTED_STEP = 6, 3
"""Words of a line that make it a quotation if a result contains them, and the words from one try to the next."""
MAX_EXCERPT = 300

_POSITION, _FIELD = re.compile(r"\[\d+\]"), re.compile(r"[^\W\d](?:[^\W\d]|\d{1,2}(?!\d)|[-_ ])*")
"""A position in a list, and a key that looks like the name of a field."""
_KEY = re.compile(r"([^\W\d][\w-]{0,39})[\"']?\s?\Z")
_LEAF_START, _LEAF_END = re.compile(r"(?:^|[:=\[{(,\n|-])\s?[\"'<]*$"), re.compile(r"[\"'>]*\s?(?:$|[,\]})\n|:])")
_OPENING = re.compile(r"(?i)<([a-z][\w-]*)[^<>]*>|(```|\"\"\")|-{3,}\s?(?:original|forwarded) message")
"""Line that opens a block which is not a user's own words."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a value in what the agent has seen."""

    kind: Kind
    step: int
    """The step that the text was added with; -1 for texts without one."""
    tool: str = ""
    """The tool whose result, arguments or schema it is."""
    field: str = ""
    """The field that holds the value, where the text shows it."""
    start: int = 0
    """Where it begins in the normal form of its text."""
    beside: str = ""
    """Instructing words near it, from the project's lists; empty for none. Those of users and policies are not looked for."""
    number: int = -1
    """Which of the indexed texts it is in; -1 for a schema."""


@dataclass(frozen=True, slots=True)
class ValuePlaces:
    """One value of an argument, and the places where it, or parts of it, occur."""

    parameter: str
    """Its path: `recipients[0]`."""
    shape: Shape
    kind: Kind
    places: tuple[Place, ...] = ()
    is_part: bool = False
    """Whether only parts of the value were found: phrases, addresses or identifiers inside."""
    is_beside: bool = False
    """Whether any place, listed or not, is beside instructing words; the alarm needs every one."""
    alarm: ActionAlarm | None = None
    """Beside or nowhere."""


@dataclass(frozen=True, slots=True)
class ActionAlarm:
    """A reason to ask before an action. It names a parameter, never its value."""

    name: AlarmName | Literal["unreadable"]
    """`unreadable` for one of another program, or of a later version."""
    parameter: str = ""
    tool: str = ""
    """For `beside` the tool whose result holds the value, for `nowhere` one that the agent passed it to before, for `repeat` the called one."""
    words: str = ""
    """The instructing words, from the project's lists."""
    is_part: bool = False
    """Whether it is a part of the value, such as an address in a message."""

    def sentence(self, value: object = None, *, is_sealed: bool = False) -> str:
        """Return the reason in words; with the value only where it may be shown."""
        part = "a part of " if self.is_part else ""
        shown = f"{part}`{self.parameter}`{' (sealed)' if is_sealed else '' if value is None else f' {value!r}'}"
        if self.name == "beside":
            where = f"text returned by `{self.tool}`" if self.tool else "a document in the user's message"
            return f"{shown} stands only in {where}, beside {self.words!r}"
        if self.name == "nowhere":
            before = f" before the agent passed it to `{self.tool}`," if self.tool else ""
            return f"{shown} is in no tool result{before} and not in the user's words"
        if self.name == "unreadable":
            return "an alarm about this call cannot be read"
        return f"the same call of `{self.tool}` already succeeded in this run"


@dataclass(slots=True)
class _Piece:
    kind: Kind
    tool: str
    step: int
    order: int
    text: str
    """In normal form: lower case, lines and single spaces."""
    is_failure: bool = False
    instructions: list[tuple[int, str, str]] | None = None
    """Found on first use."""
    squeezed: str | None = None

    @property
    def flat(self) -> str:
        """The text with spaces for line ends; places are the same."""
        return self.text.replace("\n", " ")

    def beside(self, start: int, end: int) -> str:
        """Return the instructing words near a place, if they suffice."""
        if self.kind not in {"field", "text"}:
            return ""
        if self.instructions is None:
            self.instructions = find_instructions(self.flat, set(words_of(self.text)))
        near: dict[str, str] = {}
        first = bisect_left(self.instructions, (start - BEFORE,))
        last = bisect_left(self.instructions, (end + AFTER,))
        for place, kind, phrase in self.instructions[first:last]:
            if not start <= place < end:
                near.setdefault(kind, phrase)
        return " … ".join(dict.fromkeys(near.values())) if sum(WEIGHTS[kind] for kind in near) >= ENOUGH else ""


class ProvenanceIndex:
    """What an agent has seen so far in a run. Add texts in the order in which the agent saw them; what it wrote itself is added by `add_call` only."""

    def __init__(self) -> None:
        self.gaps: dict[str, bool] = {}
        """Why a value without a place may be in something that was not read, each with whether a tool returned it, so that an instruction may be
        beside any value."""
        self._pieces: list[_Piece] = []
        self._postings: dict[str, list[int]] = {}
        self._notations: dict[str, list[Occurrence]] = {}
        self._schemas: dict[str, dict[str, str]] = {}
        self._fields: dict[str, set[str]] = {}
        """Names in the schemas of tools."""
        self._succeeded: set[bytes] = set()
        self._total = 0
        self._order = 0
        self.at: int | None = None
        """The place in their order of the texts that are added next; None behind all others."""

    def add_user(self, text: object, *, step: int = -1, is_complete: bool = True) -> str:
        """Add words that the program declares as a person's, and return them without quoted, fenced and tagged blocks, which count as documents."""
        unread: list[str] = []
        own, pasted = _split_pasted(text_of(text, unread))
        self._add("user", "", own, step, is_complete and not unread)
        self._add("text", "", pasted, step)
        return own

    def add_policy(self, text: object, *, step: int = -1, is_complete: bool = True) -> None:
        """Add the system prompt, or another text that the program's author wrote.

        Lines that quote a result are documents that the program put into the prompt, and count as such.
        """
        unread: list[str] = []
        own: dict[bool, list[str]] = {False: [], True: []}
        for line in text_of(text, unread).splitlines():
            own[not self._quotes(line)].append(line)
        self._add("policy", "", "\n".join(own[True]), step, is_complete and not unread)
        self._add("text", "", "\n".join(own[False]), step)

    def mark(self) -> int:
        """Return a place in the order of texts for `at`, for a text that is seen now and added later."""
        self._order += 1
        return self._order

    def add_result(
        self, tool: str, result: object, *, step: int = -1, has_failed: bool = False, is_complete: bool = True
    ) -> None:
        """Add what a tool returned: a string, or JSON values."""
        self._add("text", tool, result, step, is_complete, has_failed)

    def add_unknown(self, tool: str, text: str, *, step: int = -1) -> None:
        """Add the result of a tool that runs an agent, which may have invented it. Its values have the kind `unknown`."""
        self._add("unknown", tool, text, step)

    def add_call(self, tool: str, arguments: object, *, step: int = -1, has_succeeded: bool | None = None) -> None:
        """Add a call that the agent made earlier, before its result. None for a call whose result is not known."""
        is_whole = self._add("argument", tool, arguments, step, is_failure=not has_succeeded)
        digest = call_digest(tool, arguments) if has_succeeded and is_whole else None
        if digest and len(self._succeeded) < MAX_LEAVES:
            self._succeeded.add(digest)

    def add_schema(self, tool: str, schema: object) -> None:
        """Add the JSON schema of a tool's parameters: its defaults and enumerations are sources of values."""
        constants: dict[str, str] = {}
        names = self._fields[tool] = set()
        for path, leaf, _ in leaves_of(schema, []):
            names.update(map(_line, path))
            if not _CONSTANTS.isdisjoint(path):
                constants.setdefault(normal_form(leaf[:MAX_PHRASE]), path_text(path))
        self._schemas[tool] = constants

    def add_gap(self, reason: str, *, hides_results: bool = True) -> None:
        """Note that something the agent saw was not captured, redacted or cut; `hides_results` unless it is only what people told it."""
        if len(self.gaps) < 20 or hides_results > any(self.gaps.values()):
            self.gaps[reason] = hides_results or self.gaps.get(reason, False)

    def has_succeeded(self, tool: str, arguments: object) -> bool:
        """Return whether the same call, by value, succeeded earlier."""
        return call_digest(tool, arguments) in self._succeeded

    def examine(self, tool: str, arguments: object) -> tuple[tuple[ActionAlarm, ...], tuple[ValuePlaces, ...]]:
        """Return the alarms of an action, each parameter once per name, and the places of its values, in their order.

        Values that cannot be read have the kind unknown.
        """
        unread: list[str] = []
        leaves = list(islice(leaves_of(arguments, unread), MAX_VALUES + 1))
        names = dict.fromkeys((path[:at], path[at]) for path, _, _ in leaves for at in range(1, len(path)))
        inner = [(path, name) for path, name in names if not _POSITION.fullmatch(name)]
        unread += ["…"] * (len(leaves) > MAX_VALUES or len(inner) > MAX_VALUES)
        places = [
            self._trace(tool, keys, value := _line(leaf), shape_of(value, keys, is_number=bool(is_number)))
            for keys, leaf, is_number in leaves[:MAX_VALUES]
        ]
        places += self._trace_names(tool, inner[:MAX_VALUES])
        places += [ValuePlaces(path, "words", "unknown") for path in unread[:MAX_VALUES]]
        found = [values.alarm for values in places if values.alarm]
        if self.has_succeeded(tool, arguments):
            found.append(ActionAlarm("repeat", tool=tool))
        return tuple(dict.fromkeys(found)), tuple(places)

    def excerpt(self, place: Place) -> str:
        """Return the text around a place in normal form, at most `MAX_EXCERPT` characters, with "…" where it is cut; empty for a schema.

        It is what a user, a tool or a document wrote: escape it, and show it only to those who may see the run.
        """
        if not 0 <= place.number < len(self._pieces):
            return ""
        text, start = self._pieces[place.number].text, max(0, place.start - MAX_EXCERPT // 2)
        end = start + MAX_EXCERPT - 4
        return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"

    def _quotes(self, line: str) -> bool:
        """Return whether a short line, or some words of a line, are in a result that was added before."""
        words = normal_form(line).strip("-*• ").split()
        for start in range(0, max(1, len(words) - _QUOTED + 1), _QUOTED_STEP):
            found = self._phrase(" ".join(words[start : start + _QUOTED]), "words")
            if any(self._pieces[number].kind == "text" for number, _, _ in found):
                return True
        return False

    def _add(
        self, kind: Kind, tool: str, value: object, step: int, is_complete: bool = True, is_failure: bool = False
    ) -> bool:
        """Index a text; return whether nothing is missing in it."""
        order = self.mark() if self.at is None else self.at
        unread: list[str] = []
        text = normal_form(text_of(value, unread)[: MAX_TOTAL - self._total + 1])
        is_whole = is_complete and not unread and not _CUT.search(text)
        if kind != "argument" and not is_whole:
            is_stated = kind in {"user", "policy"}
            self.add_gap("a text is cut, redacted, not captured or cannot be read", hides_results=not is_stated)
        if self._total + len(text) > MAX_TOTAL:
            self.add_gap("the run is longer than what is indexed")
            text = text[: MAX_TOTAL - self._total]
        self._total += len(text)
        for start in range(0, len(text), MAX_PIECE):
            self._index(_Piece(kind, tool, step, order, text[max(0, start - OVERLAP) : start + MAX_PIECE], is_failure))
        return is_whole

    def _index(self, piece: _Piece) -> None:
        number = len(self._pieces)
        self._pieces.append(piece)
        words = set(words_of(piece.text))
        postings = self._postings
        for word in words:
            if word in postings:
                postings[word].append(number)
            else:
                postings[word] = [number]
        for key, start, end in notations_in(piece.flat, words):
            self._notations.setdefault(key, []).append((number, start, end))

    def _trace_names(self, tool: str, names: list[tuple[tuple[str, ...], str]]) -> Iterator[ValuePlaces]:
        """Look up the keys inside of arguments. Single words name fields; other names count only if they are beside instructions."""
        for path, name in names:
            value = _line(name)
            if value.isalpha() or value in self._fields.get(tool, ()):
                continue
            is_plain = bool(_FIELD.fullmatch(value))
            found = self._trace(tool, path, value, "words" if is_plain else shape_of(value))
            if found.alarm is not None:
                yield replace(found, alarm=replace(found.alarm, is_part=True))
            elif found.kind == "unknown" and not is_plain:
                yield found

    def _trace(self, tool: str, keys: tuple[str, ...], value: str, shape: Shape) -> ValuePlaces:
        path = path_text(keys)
        if _CUT.search(value):
            return ValuePlaces(path, shape, "unknown")
        places = self._places(tool, value, shape)
        alarm = self._beside(path, shape, places)
        is_part = not places and shape == "words"
        is_composed = is_part and len(value.split()) > MAX_NAME
        for part in parts_of(value) if is_part else ():
            inside = self._places(tool, part, part_shape := shape_of(part))
            is_composed &= bool(inside) or part_shape not in {"identifier", "address"}
            alarm = alarm or self._beside(path, shape, inside, is_part=True)
            places += inside
        sources = {place.kind for place, piece in places if not _is_echo(piece, places)}
        kind: Kind = min(sources - {"unknown"}, key=KINDS.index, default="nowhere")
        is_target = shape in {"identifier", "address"} and not is_everyday(value, keys)
        has_source = kind not in ({"nowhere", "argument"} if is_target else {"nowhere"})
        if not has_source and (
            self.gaps or "unknown" in sources if is_target else any(self.gaps.values()) and not is_composed
        ):
            kind = "unknown"
        elif not has_source and is_target:
            alarm = ActionAlarm("nowhere", path, next((each.tool for each, _ in places if each.kind == "argument"), ""))
        listed = tuple(place for place, _ in places[:MAX_PLACES])
        is_beside = any(place.beside for place, _ in places)
        return ValuePlaces(path, shape, kind, listed, is_part and bool(places), is_beside, alarm)

    def _places(self, tool: str, value: str, shape: Shape) -> list[_Sighting]:
        found: list[_Sighting] = []
        if path := self._schemas.get(tool, {}).get(value):
            found.append((Place("schema", -1, tool, path), _Piece("schema", "", -1, 0, value)))
        for number, start, end in sorted(set(islice(self._occurrences(value, shape), MAX_FOUND))):
            piece = self._pieces[number]
            kind, name = piece.kind, ""
            if kind == "text":
                is_leaf = _LEAF_START.search(piece.text, max(0, start - 4), start) and _LEAF_END.match(piece.text, end)
                kind = "field" if is_leaf else "text"
                if len(found) < MAX_PLACES:
                    name = _field_before(piece.text[max(0, start - 200) : start])
            found.append((Place(kind, piece.step, piece.tool, name, start, piece.beside(start, end), number), piece))
        return found

    def _occurrences(self, value: str, shape: Shape) -> Iterator[Occurrence]:
        if shape == "number":
            for key in number_keys(value):
                yield from self._notations.get(key, ())
                yield from self._phrase(key, shape)
        elif shape == "date":
            for key, _, _ in notations_in(value):
                yield from self._notations.get(key, ())
                yield from self._notations.get(key[4:], ())
        elif value:
            found = list(islice(self._phrase(value, shape), MAX_FOUND))
            yield from found
            if shape in {"identifier", "address"}:  # which the user may write with spaces, and a document without
                ends = {(number, end) for number, _, end in found}
                yield from (each for each in self._squeezed(value) if (each[0], each[2]) not in ends)

    def _phrase(self, value: str, shape: Shape) -> Iterator[Occurrence]:
        if shape == "address":
            value = value.removeprefix("https://").removeprefix("http://").rstrip("/.,")
        beginning = value[:MAX_PHRASE]
        words = (words_of(beginning)[:-1] if len(value) > MAX_PHRASE else []) or words_of(value)
        if not words:
            return
        numbers: Collection[int] = min((self._postings.get(word, ()) for word in words), key=len)
        if not value.isascii() and not numbers:
            # Scripts without spaces: the value may be a part of what looks like one long word.
            numbers = range(len(self._pieces))
        for number in islice(numbers, MAX_READ):
            flat = self._pieces[number].flat if " " in value else self._pieces[number].text
            start = flat.find(beginning)
            for _ in range(MAX_IN_PIECE):
                if start < 0:
                    break
                end = min(start + len(value), len(flat))
                if self._continues(number, flat, start, value) and stands_alone(flat, start, end, shape):
                    yield number, start, end
                start = flat.find(beginning, end)

    def _continues(self, number: int, flat: str, start: int, value: str) -> bool:
        """Return whether a value begins at a place, and goes on in the next piece where it does not end in this one."""
        here, rest = value[: len(flat) - start], value[len(flat) - start :]
        following = self._pieces[number + 1 : number + 2] if rest else ()
        return flat.startswith(here, start) and (not rest or any(p.flat.startswith(rest, OVERLAP) for p in following))

    def _squeezed(self, value: str) -> Iterator[Occurrence]:
        short = squeeze(value)
        if not LEAST_SQUEEZED <= len(short) <= 80:
            return
        pattern: re.Pattern[str] | None = None
        for number, piece in enumerate(self._pieces):
            if piece.squeezed is None:
                piece.squeezed = squeeze(piece.text)
            if short in piece.squeezed:
                pattern = pattern or re.compile(r"[\W_]{0,3}".join(map(re.escape, short)))
                for match in islice(pattern.finditer(flat := piece.flat), MAX_IN_PIECE):
                    if stands_alone(flat, *match.span(), "identifier"):
                        yield number, *match.span()

    def _beside(self, path: str, shape: Shape, found: list[_Sighting], *, is_part: bool = False) -> ActionAlarm | None:
        suspects = [(place, piece) for place, piece in found if place.beside]
        if shape == "common" or not suspects:
            return None
        suspect, first = min(suspects, key=lambda sighting: sighting[1].order)
        orders = {piece.order for _, piece in suspects}
        first_use = min((piece.order for place, piece in found if place.kind == "argument"), default=self._order + 1)
        # What the agent passed before the instruction came does not follow from it.
        is_evident = first_use < first.order
        for place, piece in found:
            # The user, and a text that the program composes, may repeat what an instruction put before them, a tool what the agent
            # passed itself, and whoever wrote the instruction may have written the value elsewhere in the same result.
            latest = first_use if piece.tool else first.order
            is_evident |= piece.order < latest and piece.order not in orders and place.kind not in _OWN
        return None if is_evident else ActionAlarm("beside", path, suspect.tool, suspect.beside, is_part)


def _line(text: str) -> str:
    return normal_form(text[:MAX_TEXT]).replace("\n", " ")


def _field_before(text: str) -> str:
    """Return the last key in a text, in front of `:` or `=`."""
    end = len(text)
    while (end := max(text.rfind(":", 0, end), text.rfind("=", 0, end))) >= 0:
        if key := _KEY.search(text, max(0, end - 42), end):
            return key[1]
    return ""


def _is_echo(piece: _Piece, found: list[_Sighting]) -> bool:
    """Return whether a text only shows a value that the agent passed before: to the same tool, or to any if the call failed."""
    return any(
        place.kind == "argument" and own.order <= piece.order
        for place, own in found
        if piece.is_failure or (piece.kind == "text" and piece.tool == own.tool)
    )


def _split_pasted(text: str) -> tuple[str, str]:
    """Return a user's own words, and the quoted, fenced and tagged blocks and forwarded messages in them."""
    own: list[str] = []
    pasted: list[str] = []
    until = ""
    for line in text.splitlines():
        start = line.strip()
        if until:
            pasted.append(line)
            if until in line:
                until = ""
        elif start.startswith(">"):
            pasted.append(line)
        elif opening := _OPENING.match(start):
            pasted.append(line)
            until = f"</{opening[1]}>" if opening[1] else opening[2] or "\0"
            if until in start[opening.end() :]:
                until = ""
        else:
            own.append(line)
    return "\n".join(own), "\n".join(pasted)
