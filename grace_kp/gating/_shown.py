"""The arguments of a request for approval, compared for a page: those that an edit has changed, and those that cannot be shown in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.gating._view import flat, view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals import Approval


def changed_arguments(approval: Approval) -> list[str]:
    """Return the parameters that an edit has changed, by comparing the values with those that were asked about."""
    asked = approval.asked
    if asked is None:
        return []
    names = dict.fromkeys([*approval.arguments, *asked])
    return [name for name in names if _flat(approval.arguments, name) != _flat(asked, name)]


def unshown_arguments(approval: Approval, max_characters: int) -> list[str]:
    """Return the arguments that cannot be shown in full, so that a plain consent to them does not count.

    Args:
        approval: the request.
        max_characters: the size up to which one argument is shown.
    """
    seen = {name: view(value, max_characters=max_characters) for name, value in approval.arguments.items()}
    return [*(name for name, found in seen.items() if found.opaque), *approval.unencoded]


def _flat(arguments: Mapping[str, object], name: str) -> str:
    return flat(view(arguments[name]).root) if name in arguments else ""
