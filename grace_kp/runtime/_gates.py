"""What gates need of the runtime: the confidence of the run so far, who is asked, and where the decision is kept."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from grace_kp.confidence import ConfidenceCalculator, Thresholds
from grace_kp.gating import ConsoleReviewer, Policy, PolicySet, gate
from grace_kp.record import Run, current_run, evidence_of, note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.confidence import ConfidenceScore

_log = logging.getLogger("grace_kp.gate")


class Gates:
    """How one runtime gates: thresholds, policies, reviewer, timeout."""

    def __init__(
        self,
        *,
        profile: str,
        thresholds: Thresholds | None,
        reviewer: Any,
        on_notify: Callable[[Any], Any] | None,
        policies: Mapping[str, Policy | str],
        timeout: float,
    ) -> None:
        self.calculator = ConfidenceCalculator(profile=profile, thresholds=thresholds or Thresholds())
        self.thresholds = self.calculator.thresholds
        self.policies = PolicySet(policies)
        self.on_notify = on_notify or _tell
        self.timeout = timeout
        self._reviewer = reviewer

    @property
    def reviewer(self) -> Any:
        """Who is asked: the one given, or with `auto` the console, when there is a terminal to ask at."""
        if self._reviewer != "auto":
            return self._reviewer
        return ConsoleReviewer() if _at_terminal() else None


class Scope:
    """One gated call: the run it belongs to, and the gates of its runtime."""

    def __init__(self, gates: Gates, *, reviewer: Any, timeout: float | None) -> None:
        self._run: Run | None = current_run()
        self._gates = gates
        self.thresholds = gates.thresholds
        self.reviewer = reviewer if reviewer is not None else gates.reviewer
        self.on_notify = gates.on_notify
        self.timeout: float | None = gates.timeout if timeout is None else timeout

    @property
    def run_id(self) -> str | None:
        """The trace that the decision will stand in."""
        return None if self._run is None else self._run.id

    @property
    def objective(self) -> str | None:
        """What the run is for."""
        return None if self._run is None else self._run.objective

    def assess(self) -> ConfidenceScore:
        """The confidence of the run so far."""
        return self._gates.calculator.calculate(evidence_of(self._run).factors())

    def record(self, entry: dict[str, Any]) -> None:
        """Keep the gate's entry with the run. What fails here is noted and changes no decision."""
        try:
            if self._run is not None:
                self._run.decisions.append(entry)
        except Exception as error:  # noqa: BLE001
            note("gate entry", error)


def gated(
    action: Any,
    *,
    gates: Callable[[], Gates],
    floor: Any,
    policy: Any,
    name: str | None,
    reviewer: Any,
    timeout: float | None,
) -> Any:
    """`action` behind a gate of whatever runtime `gates` gives when it is called."""
    own = Policy.of(policy).at_least(floor) if policy is not None else Policy.of(floor)
    return gate(
        action,
        name=name,
        policy_for=lambda called: gates().policies.for_action(called, own),
        scope=lambda: Scope(gates(), reviewer=reviewer, timeout=timeout),
    )


def _at_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None
    except (ValueError, OSError):  # closed
        return False


def _tell(request: Any) -> None:
    _log.info("%s goes ahead with a notice: %s", request.action, request.reason)
