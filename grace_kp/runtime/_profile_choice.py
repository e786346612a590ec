"""Which profiles a runtime uses, opened when they are first needed. A file or an object of the user's is opened at once, to fail early."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from grace_kp.background import Lock, Resident, watch
from grace_kp.settings import PROFILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.confidence import Thresholds
    from grace_kp.runtime._profile_set import ProfileSet
    from grace_kp.settings import Settings


def named(profile: object) -> str | None:
    """Return the name or the path of a profile; None for a profile itself."""
    return os.fspath(profile) if isinstance(profile, str | os.PathLike) else None


class ProfileChoice(Resident):
    """The profiles of a runtime."""

    def __init__(self, settings: Settings, profile: object, shadow: object, thresholds: Thresholds | None) -> None:
        """Open what the user passed.

        Args:
            settings: name the profile and the thresholds where the other arguments do not.
            profile: a profile, its name or its path; None for that of the settings.
            shadow: see `Grace`.
            thresholds: those of the gates; None for those of the settings or the profile.

        Raises:
            SettingsError: a profile or its file cannot be used, or the profile does not have the digest of the settings.
            TypeError: the thresholds are not a `Thresholds`.
        """
        if thresholds is not None:
            from grace_kp.confidence import check_thresholds

            check_thresholds(thresholds)
        own = profile if named(profile) is None else None
        self._arguments = (settings, own, shadow, thresholds)
        self._profiles: ProfileSet | None = None
        self.after_fork()
        watch(self)
        if own is not None or shadow is not None or settings.profile_digest or settings.profile not in PROFILES:
            self.get()

    def import_locks(self) -> Sequence[Lock]:
        """Return the lock that is held while profiles are opened."""
        return (self._lock,)

    def after_fork(self) -> None:
        """Replace the lock in the child."""
        self._lock = threading.RLock()

    def get(self) -> ProfileSet:
        """Return the profiles."""
        profiles = self._profiles
        if profiles is None:
            with self._lock:  # what is known against a profile must stand in one place
                if self._profiles is None:
                    from grace_kp.runtime._profile_set import ProfileSet

                    self._profiles = ProfileSet.of_runtime(*self._arguments)
                profiles = self._profiles
        return profiles

    def describe(self) -> dict[str, Any] | None:
        """Return what is known of the profiles, for `Grace.status()`; None before they were needed."""
        return None if self._profiles is None else self._profiles.describe()
