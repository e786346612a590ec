"""A request for approval as people and programs see it."""

from __future__ import annotations

from dataclasses import dataclass

from grace_kp.approvals._facts import RequestFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(RequestFacts):
    """A request for approval at one revision. It is a value: it never changes; read it again to see changes.

    Texts of people and agents may be hostile; whoever displays them makes control and bidirectional characters visible.
    """

    def _repr_html_(self) -> str:
        """Return the request for a notebook: what would run, why a person is asked, and what came of it. Sealed arguments stay sealed."""
        from grace_kp.approvals._html import approval_html
        from grace_kp.pages import notebook

        return notebook(approval_html(self))
