"""Every error this library raises on purpose.

GraceError
 ├── SettingsError (ValueError)        a setting that is unknown or has no usable value
 ├── InvalidTrace (ValueError)         a trace that breaks the schema; `.path` names the field
 │    └── InvalidRecord                the same inside a file; `.file` and `.line` name the place
 ├── InvalidHistory (ValueError)       a history of rounds that cannot be read; `.file` and `.line` name the place
 ├── StoreError                        a store that cannot be opened or read
 ├── GateError (TypeError)             a gate on something that cannot be gated
 ├── MissingExtra (ImportError)        an optional package is not installed; names the pip command
 ├── JudgeError                        a model that judges could not be asked, or was not allowed to be
 ├── EvaluationFailed                  a judgement could not be had, where the caller asked for an error instead of 0.5
 ├── EmbedderError                     a model that embeds cannot be loaded or used
 └── ActionNotApproved                 a gate kept an action from running
      ├── ActionCancelled              a person (or the absence of one) said no
      │    └── ActionTimedOut          nobody answered in time; this is not a refusal
      ├── ActionDenied                 the policy says no, nobody was asked
      ├── ActionRedirected             a person gave words for the agent instead; `.user_input`
      └── ActionOutcomeUnknown         it was begun before and is not begun again; `.state` says what is known
"""

from __future__ import annotations

from typing import Any, TypeGuard


class GraceError(Exception):
    """The root of all errors of this library. Each can be copied and pickled with all that it carries."""

    def __reduce__(self) -> Any:
        # Exceptions are rebuilt from their args alone; ours take keywords too, and process pools pickle what is raised.
        return _rebuild, (type(self), self.args), self.__dict__


class SettingsError(GraceError, ValueError):
    """A setting that is unknown or has a value that cannot be used. The message names it and where it came from."""


class InvalidTrace(GraceError, ValueError):
    """A trace that breaks the schema.

    Attributes:
        path: the field, for example `steps[2].type`; empty when the whole document is not an object.
        problem: what is wrong with it, without the path.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}" if path else problem)


class InvalidRecord(InvalidTrace):
    """A line of a file that cannot be read as a trace or a run.

    Attributes:
        file: the file as it was given.
        line: the line, counted from 1; 0 when the file as a whole is meant.
    """

    def __init__(self, problem: str, *, file: str, line: int = 0, path: str = "") -> None:
        self.file = file
        self.line = line
        super().__init__(problem, path=path)
        place = f"{file}:{line}" if line else file
        self.args = (f"{place}: {self.args[0]}",)


class InvalidHistory(GraceError, ValueError):
    """A page with the rounds of a comparison cannot be read, or says something else than its runs.

    Attributes:
        file: the page.
        line: the line, counted from 1.
    """

    def __init__(self, problem: str, *, file: str = "", line: int = 0) -> None:
        self.file = file
        self.line = line
        super().__init__(f"{file}:{line}: {problem}" if file else problem)


class StoreError(GraceError):
    """A store that cannot be opened, read or understood (an unknown URL, a newer schema, a damaged file)."""


class GateError(GraceError, TypeError):
    """A gate was put on something that cannot be gated, such as a generator function. The message says why."""


class MissingExtra(GraceError, ImportError):
    """An optional package is needed and not installed. The message names the pip command that brings it."""

    def __init__(self, what: str, extra: str) -> None:
        self.what = what
        self.extra = extra
        super().__init__(f"{what} needs an optional package: pip install 'grace-kp[{extra}]'")


class JudgeError(GraceError):
    """A model that judges could not be asked.

    Attributes:
        attempts: how often it was tried.
        status: the HTTP status of the last answer; None when there was none.
    """

    def __init__(self, message: str, *, attempts: int = 1, status: int | None = None) -> None:
        self.attempts = attempts
        self.status = status
        super().__init__(message)


class EvaluationFailed(GraceError):
    """A judgement could not be had, and the caller asked for an error (`on_failure="raise"`).

    Attributes:
        evaluation: the fallback that would have been returned.
    """

    def __init__(self, message: str, *, evaluation: object = None) -> None:
        self.evaluation = evaluation
        super().__init__(message)


class EmbedderError(GraceError):
    """A model that embeds cannot be loaded or used: it is not on disk, its files are not the right ones, it gave nothing usable."""


class ActionNotApproved(GraceError):
    """A gate kept an action from running.

    Attributes:
        decision: the frozen ActionDecision that the gate acted on.
        request: the InterventionRequest that was, or would have been, shown; None when nobody was asked.
        response: the InterventionResponse, None when there is none.
    """

    def __init__(
        self, message: str, *, decision: object = None, request: object = None, response: object = None
    ) -> None:
        self.decision = decision
        self.request = request
        self.response = response
        super().__init__(message)


class ActionCancelled(ActionNotApproved):
    """The action was refused: by the reviewer, because nobody can be asked, or because asking failed."""


class ActionTimedOut(ActionCancelled):
    """Nobody answered in time. It is not a refusal, and its message does not say it was one."""


class ActionDenied(ActionNotApproved):
    """The policy forbids the action (`floor="deny"`); nobody was asked."""


class ActionRedirected(ActionNotApproved):
    """The reviewer gave the agent words instead of a yes.

    Attributes:
        user_input: the reviewer's words.
    """

    def __init__(
        self,
        message: str,
        *,
        user_input: str = "",
        decision: object = None,
        request: object = None,
        response: object = None,
    ) -> None:
        self.user_input = user_input
        super().__init__(message, decision=decision, request=request, response=response)


class ActionOutcomeUnknown(ActionNotApproved):
    """The action was begun before and is not begun again; what it gave cannot be given.

    Attributes:
        state: `running` where nobody knows whether it came to its end, `done`, or `failed`.
    """

    def __init__(
        self,
        message: str,
        *,
        state: str = "running",
        decision: object = None,
        request: object = None,
        response: object = None,
    ) -> None:
        self.state = state
        super().__init__(message, decision=decision, request=request, response=response)


def brief(value: object) -> str:
    """A value as messages show what they were given: one line of at most 60 characters, whatever it is."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a very large number"  # Python refuses to write out some of these
    try:
        text = repr(value[:61] if isinstance(value, str) else value)
    except Exception:  # noqa: BLE001 — a foreign repr may raise anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def is_unit(value: object) -> TypeGuard[float]:
    """Return whether the value is a number from 0 to 1; neither a truth value nor NaN is."""
    return isinstance(value, float | int) and not isinstance(value, bool) and 0 <= value <= 1


def check_unit(name: str, value: object, alternative: str = "") -> None:
    """Refuse a value that is not a number from 0 to 1.

    Args:
        name: what the message calls the value.
        value: the value.
        alternative: what else the caller accepts, for the message.

    Raises:
        ValueError: naming the value, what was found, and what is allowed.
    """
    if not is_unit(value):
        allowed = f"a number from 0 to 1, {alternative}" if alternative else "a number from 0 to 1"
        # Not the repr of an arbitrary object: it would run foreign code.
        shown = brief(value) if isinstance(value, float | int | str | None) else type(value).__name__
        raise ValueError(f"{name} must be {allowed} (got {shown})")


def _rebuild(cls: type[GraceError], args: tuple[Any, ...]) -> GraceError:
    error = cls.__new__(cls, *args)
    super(GraceError, error).__init__(
        *args
    )  # the built-in class beside ours may keep state of its own, as ImportError does
    return error
