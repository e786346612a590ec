"""What adapters share whose framework has a hook before a tool and one after it, and none around it.

The first hook takes a claim, the second reports it. What the second never hears of becomes unknown when the run ends.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError
from grace_kp.gating import PolicySet
from grace_kp.record import attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from grace_kp.gating import Claim, Policy, Verdict
    from grace_kp.runtime import Action, Grace

_log = logging.getLogger("grace_kp.gate")
MAX_ACTIONS = 1_000
_ENDINGS = {"done": "close", "failed": "fail"}


class Tools:
    """The tools of an adapter, as actions."""

    def __init__(
        self,
        owner: str,
        grace: Grace,
        gates: Mapping[str, Policy | str] | None,
        failed: Callable[[Any], object] | None = None,
    ) -> None:
        self._owner, self._grace, self._failed = owner, grace, failed
        self._policies = PolicySet(gates)
        self._actions: dict[str, Action] = {}
        self._warned: set[str] = set()

    def action(self, name: str, schema: Callable[[], Any] = lambda: None) -> Action:
        """Return the action of a tool, which is gated only if a policy matches its name."""
        if name not in self._actions:
            if len(self._actions) >= MAX_ACTIONS:  # a model may call tools by any name
                self._actions.clear()
            policy, stated = self._policies.stated_for(name), attempt(self._owner, schema)
            self._actions[name] = self._grace.action(name, schema=stated, policy=policy, failed=self._failed)
        return self._actions[name]

    def warn_of_unmatched(self, names: Iterable[str]) -> None:
        """Warn of gates that match none of these tools."""
        for stated, near in self._policies.unmatched(names).items():
            self.warn(f"{self._owner}(gates=...): no tool so far is called {stated!r} (nearest: {near})")

    def warn(self, text: str) -> None:
        """Warn in the log, once."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)


class OpenCall:
    """A call between the two hooks, recorded in its run. What its tool does belongs to it, until it is left."""

    def __init__(self, run: Any, action: Action, arguments: Mapping[str, Any], claim: Claim | None) -> None:
        self._claim = claim
        self._call = run and attempt("an adapter", partial(run.open_tool, action, arguments))
        self._block = self._call and attempt("an adapter", self._call.current)
        attempt("an adapter", lambda: self._block and self._block.__enter__())

    def leave(self) -> None:
        """End what belongs to the call. To be called in the context of the tool."""
        attempt("an adapter", lambda: self._block and self._block.__exit__(None, None, None))

    def report(self, outcome: str, *value: Any) -> None:
        """Report `done` with a result, `failed` with an error, `unknown`, or `release` where the tool did not run."""
        attempt("an adapter", lambda: self._call and getattr(self._call, _ENDINGS.get(outcome, "drop"))(*value))
        try:
            if self._claim is not None:
                getattr(self._claim, outcome)(*value)
        except Exception as error:  # noqa: BLE001 — the result is the agent's; the claim becomes unknown with its run
            _log.warning("the outcome of a gated call could not be kept: %r", error)


def refusal_after(error: Exception, name: str) -> str:
    """Return what to tell the model after a gate failed."""
    _log.warning("the gate of %s failed: %r", name, error)
    return f"The gate of `{name}` failed ({type(error).__name__}). Not run; do not call it again."


def may_be_claimed_later(verdict: Verdict, claim: Claim | None) -> bool:
    """Return whether the call of an approval did not start only because the store could not keep its claim."""
    cause = None if claim is None or claim.error is None else claim.error.__cause__
    return verdict.approval is not None and isinstance(cause, StoreError)
