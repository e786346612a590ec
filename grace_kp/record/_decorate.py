"""Turns a function into its recorded twin, and a `with` block into a run, for `Grace.agent`, `.tool`, `.run` and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.record._current import CURRENT
from grace_kp.record._guard import shielded, shielded_end
from grace_kp.record._spec import AGENT, Spec, can_seal
from grace_kp.record._wrap import open_run, silent_run, wrap

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from types import TracebackType

    from grace_kp.record._run import Recorder, Run


def decorate(
    function: object,
    *,
    recorder: Callable[[], Recorder],
    kind: str,
    failed: Callable[[Any], object] | None = None,
    **spec: Any,
) -> Any:
    """Return `function` recorded as `kind`; static and class methods stay what they are. `failed` says whether a result is a failure."""
    if isinstance(function, staticmethod | classmethod):
        return type(function)(decorate(function.__func__, recorder=recorder, kind=kind, failed=failed, **spec))
    if not callable(function):
        raise TypeError(f"@{kind} goes on a function, not on {type(function).__name__} {function!r:.60}")
    if isinstance(function, type):
        raise TypeError(
            f"@{kind} goes on a function or method, not on the class {function.__name__}; decorate its methods"
        )
    described = Spec(function, kind=kind, **spec)
    if failed is not None:
        described.failed, described.looks = failed, True
    if described.searches:
        import grace_kp.confidence  # noqa: F401 — reads the results, and must not be loaded while the first search is recorded
    recorded = wrap(function, described, recorder)
    spec = {**spec, "kind": kind, "failed": failed}
    can_seal(recorded, lambda names: decorate(function, recorder=recorder, **{**spec, "sealed": names}))
    return recorded


class RunBlock:
    """`with grace.run("objective") as run:` — a run without a decorator. Works with `async with`, too. For one use."""

    __slots__ = ("_attributes", "_objective", "_recorder", "_run", "_spec", "_token")

    def __init__(
        self,
        objective: str,
        *,
        recorder: Callable[[], Recorder],
        name: str,
        domain: str | None,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        self._recorder = recorder
        self._spec = Spec(None, kind=AGENT, name=name, domain=domain)
        self._objective = objective
        self._attributes = attributes
        self._run: Run | None = None
        self._token: Token[Any] | None = None

    def __enter__(self) -> Run:
        run = _open(self._recorder, self._spec, self._objective) or silent_run(self._spec, self._objective)
        run.keep = True
        if self._attributes:
            run.update(**self._attributes)
        self._run = run
        self._token = CURRENT.set(run)
        return run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run, token = self._run, self._token
        if run is None or token is None:
            return
        try:
            CURRENT.reset(token)
        except ValueError:
            CURRENT.set(None)  # left in a context other than the one it was entered in
        _end(run, error)

    async def __aenter__(self) -> Run:
        self._spec.can_await = True
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)
        if self._run is not None and self._run.stored is not None and kind is not GeneratorExit:
            await self._run.stored


@shielded
def _open(recorder: Callable[[], Recorder], spec: Spec, objective: str) -> Run | None:
    return open_run(recorder(), spec, (), {}, objective=objective)


@shielded_end
def _end(run: Run, error: BaseException | None) -> None:
    if error is None:
        run.close(None)
    else:
        run.fail(error)
