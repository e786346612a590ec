"""Who does something to an approval, as far as that is known."""

from __future__ import annotations

import getpass
import socket
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person or a process. A name is *stated* unless a login has established it."""

    name: str
    channel: str = "python"
    """Where the verb was called: `python`, `cli`, `web`, `console`, `gate`, `standing`."""
    authenticated: bool = False
    """Whether a login established the name. Whoever passes `by=` only states it."""
    os_user: str = ""
    host: str = ""

    @classmethod
    def here(cls, name: str, *, channel: str = "python", authenticated: bool = False) -> Actor:
        """Return the actor with this name, in this process.

        Raises:
            ValueError: the name is no text, is empty, or has more than 200 characters.
        """
        if not isinstance(name, str) or not name.strip() or len(name) > 200:
            raise ValueError(f"by must be a name of 1 to 200 characters, not {name!r:.60}")
        return cls(
            name=name.strip(),
            channel=channel,
            authenticated=authenticated,
            os_user=_os_user(),
            host=socket.gethostname(),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the actor as JSON; fields that are not known are left out."""
        fields = {
            "name": self.name,
            "channel": self.channel,
            "authenticated": self.authenticated,
            "os_user": self.os_user,
            "host": self.host,
        }
        return {name: value for name, value in fields.items() if value != ""}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Actor:
        """Return an actor from its JSON."""
        return cls(**data)


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no entry for the user id, as in some containers
        return ""
