"""What a gate fixes about the requests of its action that outlive the process: key, parameters without meaning, sealed parameters, version."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.errors import GateError

if TYPE_CHECKING:
    from grace_kp.approvals import KeyTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How the calls of an action are identified and kept in an inbox."""

    signature: inspect.Signature
    hidden: str | None
    """The parameter that is the method's own object."""
    key: KeyTemplate | None = None
    ignore: tuple[str, ...] = ()
    """Parameters that carry no meaning."""
    sealed: tuple[str, ...] = ()
    """Parameters that are kept encrypted."""
    declared_version: str | None = None
    is_coroutine: bool = False
    place: str = ""
    """Module and name of the function."""

    @classmethod
    def of(
        cls,
        action: Any,
        signature: inspect.Signature,
        hidden: str | None,
        stated: Mapping[str, Any],
        injected: Iterable[str] = (),
    ) -> Terms:
        """Return the terms of an action.

        Args:
            action: the function.
            signature: its signature.
            hidden: the parameter that is the method's own object.
            stated: `key`, `ignore`, `sealed` and `version` as the decorator was called with them.
            injected: parameters that a framework fills in; they count as ignored.

        Raises:
            GateError: one of them names no parameter, or has a value that cannot be used.
        """
        ignore = tuple(
            dict.fromkeys([*_parameters("ignore", stated.get("ignore"), signature, hidden), *sorted(injected)])
        )
        sealed = _parameters("sealed", stated.get("sealed"), signature, hidden)
        if both := sorted({*ignore} & {*sealed}):
            raise GateError(
                f"{both[0]!r} is in ignore and in sealed; an ignored parameter is not kept, so that nothing is to be sealed"
            )
        version, key, template = stated.get("version"), stated.get("key"), None
        if version is not None and not (isinstance(version, str) and version.strip() and len(version) <= 100):
            raise GateError(f"version must be a text of 1 to 100 characters, not {version!r:.60}")
        if key is not None:
            from grace_kp.approvals import KeyTemplate

            template = KeyTemplate(key, signature, sealed=sealed)
            if wrong := sorted({*template.fields} & {*ignore, hidden}):
                raise GateError(
                    f"key names {wrong[0]!r}, which carries no meaning; name a parameter that identifies the operation"
                )
        return cls(
            signature=signature,
            hidden=hidden,
            key=template,
            ignore=ignore,
            sealed=sealed,
            declared_version=version,
            is_coroutine=inspect.iscoroutinefunction(action),
            place=f"{getattr(action, '__module__', '')}:{getattr(action, '__qualname__', type(action).__name__)}",
        )

    @property
    def version(self) -> str:
        """The version of the action: the declared one, else a hash of its signature."""
        from grace_kp.approvals import version_of

        return version_of(self.signature, self.declared_version)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Parameters that may differ between request and execution."""
        return self.ignore

    def covered(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments that a request is about."""
        return {name: value for name, value in arguments.items() if name not in self.not_covered}


def _parameters(what: str, named: object, signature: inspect.Signature, hidden: str | None) -> tuple[str, ...]:
    if named is None:
        return ()
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise GateError(f'{what} must be names of parameters, such as ("session",), not {named!r:.60}')
    names = tuple(dict.fromkeys(named))
    known = [name for name in signature.parameters if name != hidden]
    for name in names:
        if name not in known:
            raise GateError(
                f"{what} names {name!r:.60}, which is no parameter of the action; it has {', '.join(known) or 'none'}"
            )
    return names
