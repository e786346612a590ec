"""A group of commands whose error for an unknown command says what is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup

if TYPE_CHECKING:
    from collections.abc import Sequence


class SuggestingGroup(TyperGroup):
    """Names its commands where one is unknown."""

    usage = ""
    """What else may be meant by an argument that is no command; empty for nothing."""

    def resolve_command(self, ctx: Any, args: Sequence[str]) -> Any:
        """Return the command that the first argument names, with the other arguments."""
        name = str(args[0])
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            commands = ", ".join(self.list_commands(ctx))
            more = f"; {self.usage}" if self.usage else ""
            ctx.fail(f"no command {name!r:.80}; commands: {commands}{more}")
        return super().resolve_command(ctx, list(args))
