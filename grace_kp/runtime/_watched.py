"""The verbs of a runtime about labels and promises: feedback on finished runs, and alarms when a promise is refuted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from grace_kp.errors import SettingsError
from grace_kp.levels import PrivacyLevel

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from grace_kp.calibrate import Alarm, Monitor
    from grace_kp.record import Recorder
    from grace_kp.runtime._profile_choice import ProfileChoice
    from grace_kp.runtime._promise import Promise
    from grace_kp.runtime._writer import Writer
    from grace_kp.settings import Settings

    Callback = TypeVar("Callback", bound=Callable[[Alarm], Any])


class Watched:
    """The part of `Grace` that takes labels."""

    settings: Settings
    recorder: Recorder
    _profiles: ProfileChoice
    _promise: Promise | None

    @property
    def _writer(self) -> Writer:
        raise NotImplementedError

    def _watch(self, monitor: Monitor | bool | None) -> Promise | None:
        """Return the promise to watch, and have gates consult it; None without a monitor."""
        if monitor is None or monitor is False:
            return None
        from grace_kp.runtime._promise import Promise, monitor_of

        profiles = self._profiles.get()
        profile = profiles.main.learned or profiles.main.name
        test = monitor_of(monitor, profile, self.settings.audit_rate)
        promise = Promise(test, profile, lambda: self._writer.store(), asks=self.settings.on_alarm == "confirm")
        if profiles.trust is not None:
            profiles.trust.doubts.append(promise.doubts)
        return promise

    def feedback(
        self,
        trace_id: str,
        correct: bool | float,
        source: str = "user",
        *,
        by: str | None = None,
        note: str | None = None,
        probability: float | None = None,
        program: bool = False,
    ) -> None:
        """State whether a finished run was right. The label is stored with its trace: `trace.grace["feedback"]`, newest last.

        Runs of other processes in the same store may be labelled, and any run repeatedly. A label with the name of a person counts before one
        without a name, and that before one of a program; among equals, the newest counts. A label by the run's own `user` never counts. It
        writes to the store before it returns. In an event loop call `await asyncio.to_thread(grace.feedback, trace_id, True)`.

        Args:
            trace_id: the id of the run or trace; a suspended run has one, too, an open run not yet.
            correct: True or False, or a number from 0 (wrong) to 1 (right). Guarantees use only 0 and 1.
            source: where the label comes from: `user`, `test`, `audit` (the run was drawn at random), `approval` (a person agreed to it,
                which is no label of correctness and counts only where it is named), `outcome`, or a name of your own.
            by: who stated it; at most 200 characters. Pass the name of the person whose judgement your program records.
            note: a remark; at most 2,000 characters. Secrets are removed from `by` and `note`.
            probability: the probability with which the run was chosen to be labelled, above 0 and at most 1. Labels are weighted by its
                inverse. When None, it is 1, and for an `audit` what the gates have recorded.
            program: True states that `by` is a program, such as an agent. Its label may have none of the sources that are reserved for
                people (`approval`, `audit`, `person`, `reviewer`, `seeded`), and no probability below 1.

        Raises:
            ValueError: an argument cannot be used, or an audit has no probability.
            UnknownTrace: the store holds no such trace, or its run is still open.
            StoreError: the store cannot be opened or written, or keeps no feedback.
        """
        from grace_kp.runtime._feedback import feedback_entry, mark_program, state_feedback

        entry = feedback_entry(
            trace_id,
            correct,
            source,
            by=by,
            note=note,
            probability=probability,
            identifiers=PrivacyLevel(self.settings.privacy_level).hides_identifiers,
            at_ns=self.recorder.wall_clock(),
        )
        entry = mark_program(entry) if program else entry
        if self._promise is not None:
            self._promise.states()  # from now on the store counts labels for it
        state_feedback(self._writer, entry, {run.id for run in list(self.recorder.open_runs)})
        if self._promise is not None:
            self._promise.labelled(entry)

    def on_alarm(self, callback: Callback) -> Callback:
        """Call `callback` with the `calibrate.Alarm` when a promise is refuted, once per alarm and process. Works as a decorator.

        It runs in the thread that finds the alarm, in `feedback`, `status` or before a gated action, so it must return quickly. Alarms that
        other processes raise are found within five seconds of activity at gates. Exceptions in it are logged and have no other effect.

        Raises:
            SettingsError: this runtime watches no promise.
            TypeError: it is not callable.
        """
        if not callable(callback):
            raise TypeError(f"on_alarm takes a callable, not {type(callback).__name__}")
        self._watched_promise().hooks.append(callback)
        return callback

    def reset_alarms(self) -> None:
        """Forget the labels and alarms of the promise in all processes, for example once their cause is removed.

        The test begins anew, with a new `delta`. Runs whose label was counted are not counted again.

        Raises:
            SettingsError: this runtime watches no promise.
            StoreError: the store cannot be used.
        """
        self._watched_promise().reset()

    def _watched_promise(self) -> Promise:
        if self._promise is None:
            raise SettingsError("this runtime watches no promise: pass monitor=True or a calibrate.Monitor to Grace")
        return self._promise
