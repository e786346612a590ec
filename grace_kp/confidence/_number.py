"""Which foreign objects are numbers, or arrays of numbers, that run no unknown code when they are converted."""

from __future__ import annotations

from typing import Any

_MODULES = frozenset({"decimal", "fractions", "numpy", "torch", "jax", "jaxlib", "tensorflow"})
_MAX_ITEMS = 10_000


def is_number(value: Any) -> bool:
    """Return whether the value is a number, Python's own or of a known library; a truth value is none."""
    if isinstance(value, int | float):
        return not isinstance(value, bool)
    return module_of(value) in _MODULES and hasattr(type(value), "__float__") and not getattr(value, "ndim", 0)


def listed_array(value: Any) -> Any:
    """Return an array of a known library as nested lists, and any other value as it is. Large arrays stay as they are."""
    if module_of(value) in _MODULES and hasattr(type(value), "tolist") and hasattr(type(value), "__len__"):
        try:
            return value.tolist() if len(value) <= _MAX_ITEMS else value
        except (TypeError, ValueError, RuntimeError):  # an array without dimensions, or one on a device that is gone
            return value
    return value


def module_of(value: Any) -> str:
    """Return the top-level module of the value's class; empty where it has none."""
    module = type(value).__module__
    return module.partition(".")[0] if isinstance(module, str) else ""
