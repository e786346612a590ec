"""Attributes of objects and cells of functions, read where Python stores them. No code of the objects runs, and nothing is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.trace import dictionary_getter, slots_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAP_TYPE = 1 << 9
_POINTER = 8


def classes_above(base: type, kind: type) -> list[type]:
    """Return the classes of `kind` that are none of `base`."""
    return [owner for owner in kind.__mro__ if owner not in base.__mro__]


def is_transparent(kind: type, base: type = object) -> bool:
    """Whether slots and dictionary hold everything that instances of `kind` have beyond those of `base`.

    That is so where the classes above the base are written in Python and nothing else makes an instance larger.
    """
    above = classes_above(base, kind)
    slots = sum(len(slots_of(owner)) for owner in above)
    weak = kind.__weakrefoffset__ > 0 and not base.__weakrefoffset__
    # A dictionary in front of the object is not part of its size; one behind a varying number of items is.
    dictionary = not base.__dictoffset__ and (kind.__dictoffset__ > 0 or kind.__dictoffset__ == -_POINTER)
    return (
        all(owner.__flags__ & _HEAP_TYPE for owner in above)
        and kind.__basicsize__ - base.__basicsize__ == _POINTER * (slots + weak + dictionary)
        and not (kind.__dictoffset__ and dictionary_getter(kind) is None)
    )


def closure_of(function: object) -> Mapping[str, object]:
    """Return the values that a function holds in its closure, by name. Cells that are not filled yet are left out."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def qualified_name(kind: type) -> str:
    """Return module and name of a class, the same in every version of Python."""
    module = "pathlib" if kind.__module__ == "pathlib._local" else kind.__module__  # as Python 3.13 names it
    return f"{module}.{kind.__qualname__}"
