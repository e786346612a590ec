"""The default runtime, for `gk.agent`, `gk.tool` and the other module-level verbs; created on first use.

Decorating a function does not create it: a module can be imported, and its functions decorated, before `gk.configure(...)` is called.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from grace_kp.runtime._approvals import Definitions
from grace_kp.runtime._front import Front
from grace_kp.runtime._grace import Grace

if TYPE_CHECKING:
    from grace_kp.runtime._gates import Gates


class Default(Front):
    """The module-level verbs: those of `Grace`, on the runtime that is the default when they are called."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._grace: Grace | None = None
        self._defined = Definitions()

    def __reduce__(self) -> str:
        return "DEFAULT"  # a function from a pickle records with the default runtime of its process

    def get(self) -> Grace:
        """Return the default runtime, created from the settings on first use."""
        if self._grace is None:
            with self._lock:
                if self._grace is None:
                    self._grace = self._own(Grace())
        return self._grace

    def configure(self, **settings: Any) -> Grace:
        """Replace the default runtime by a new one with the arguments of `Grace`; the previous runtime is flushed and closed.

        Returns:
            The new default runtime.

        Raises:
            SettingsError: a setting is unknown or has no usable value; the previous runtime stays.
        """
        grace = self._own(Grace(**settings))
        with self._lock:
            before, self._grace = self._grace, grace
        if before is not None:
            before.close()
        return grace

    def _own(self, grace: Grace) -> Grace:
        """Return a runtime that knows the actions of the module-level verbs."""
        grace._defined = self._defined
        return grace

    def _runtime(self) -> Grace:
        return self.get()

    def _existing_gates(self) -> Gates | None:
        return None if self._grace is None else self._grace._existing_gates()

    def _gates(self) -> Gates:
        return self.get()._gates()


DEFAULT = Default()

agent = DEFAULT.agent
tool = DEFAULT.tool
retriever = DEFAULT.retriever
gate = DEFAULT.gate
run = DEFAULT.run
thought = DEFAULT.thought
outcome = DEFAULT.outcome
update = DEFAULT.update
configure = DEFAULT.configure
feedback = DEFAULT.feedback
default = DEFAULT.get
