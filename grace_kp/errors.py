"""The errors of this library. Every error it raises on purpose is a GraceError.

GraceError
 ├── SettingsError (ValueError)        a setting that is unknown or has no usable value
 ├── InvalidTrace (ValueError)         a trace that breaks the schema; `.path` names the field
 │    └── InvalidRecord                an invalid trace in a file; `.file` and `.line` name the place
 ├── InvalidHistory (ValueError)       a history of rounds that cannot be read; `.file` and `.line` name the place
 ├── StoreError                        a store that cannot be opened or read
 ├── UnknownTrace (LookupError)        a trace that the store does not hold; `.trace_id`
 ├── GateError (TypeError)             a gate on something that cannot be gated
 ├── MissingExtra (ImportError)        an optional package is not installed; names the pip command
 ├── JudgeError                        a judge could not be asked, or a spending limit forbade it
 ├── EvaluationFailed                  a judgement failed, and the caller wanted an error instead of 0.5
 ├── EmbedderError                     an embedder cannot be loaded or used
 ├── ApprovalError                     a verb on an approval that cannot be carried out; nothing was changed; `.approval_id`
 │    ├── UnknownApproval (LookupError) no approval has this id
 │    ├── AlreadyDecided               another decision or the end of the request came first; `.by`, `.at`, `.state`
 │    ├── NotEntitled (PermissionError) this person may not decide it
 │    ├── ChangedSinceShown            the arguments changed after they were shown
 │    └── EditRefused (ValueError)     the edited arguments do not fit the action, or change what identifies it
 └── ActionNotApproved                 a gate kept an action from running
      ├── ActionCancelled              the reviewer refused, or no reviewer was available
      │    └── ActionTimedOut          no answer in time; this is not a refusal
      ├── ActionDenied                 the policy forbids the action; no reviewer was asked
      ├── ActionRedirected             the reviewer answered with instructions for the agent; `.user_input`
      ├── ActionPending                the request waits for a decision, and the caller does not; `.approval`
      ├── KeyReused                    the key of the action belongs to a request with other arguments; `.approval_id`
      └── ActionOutcomeUnknown         the action was started before and is not started again; `.state`
"""

from __future__ import annotations

from typing import Any, TypeGuard


class GraceError(Exception):
    """Base class of all errors of this library. They can be copied and pickled with all their attributes."""

    def __init__(self, *args: object, **attributes: object) -> None:
        unknown = next((name for name in attributes if not hasattr(type(self), name)), None)
        if unknown is not None:
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown!r}")
        super().__init__(*args)
        self.__dict__.update(attributes)

    def __reduce__(self) -> Any:
        # Python rebuilds exceptions from `args` alone; ours take keywords, and process pools pickle exceptions.
        return _rebuild, (type(self), self.args), self.__dict__


class SettingsError(GraceError, ValueError):
    """A setting is unknown or has an unusable value. The message names the setting and its source."""


class InvalidTrace(GraceError, ValueError):
    """A trace breaks the schema.

    Attributes:
        path: the field, for example `steps[2].type`; empty when the whole document is not an object.
        problem: the problem, without the path.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}" if path else problem)


class InvalidRecord(InvalidTrace):
    """A line of a file cannot be read as a trace or a run.

    Attributes:
        file: the file, as the caller named it.
        line: the line, counted from 1; 0 for the file as a whole.
    """

    def __init__(self, problem: str, *, file: str, line: int = 0, path: str = "") -> None:
        self.file = file
        self.line = line
        super().__init__(problem, path=path)
        place = f"{file}:{line}" if line else file
        self.args = (f"{place}: {self.args[0]}",)


class InvalidHistory(GraceError, ValueError):
    """The rounds of a comparison cannot be read from a page, or the page contradicts its runs.

    Attributes:
        file: the page.
        line: the line, counted from 1.
    """

    def __init__(self, problem: str, *, file: str = "", line: int = 0) -> None:
        self.file = file
        self.line = line
        super().__init__(f"{file}:{line}: {problem}" if file else problem)


class StoreError(GraceError):
    """A store cannot be opened or read: an unknown URL, a newer schema, a damaged file."""


class UnknownTrace(GraceError, LookupError):
    """The store holds no trace with this id."""

    trace_id: str = ""
    """The id."""

    def __init__(self, message: str, trace_id: str = "") -> None:
        super().__init__(message, trace_id=trace_id)


class GateError(GraceError, TypeError):
    """The decorated object cannot be gated, for example a generator function. The message gives the reason."""


class MissingExtra(GraceError, ImportError):
    """An optional package is not installed. The message names the pip command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        self.what = what
        self.extra = extra
        super().__init__(f"{what} needs an optional package: pip install 'grace-kp[{extra}]'")


class JudgeError(GraceError):
    """A judge could not be asked."""

    attempts: int = 1
    """Number of attempts."""
    status: int | None = None
    """HTTP status of the last response; None without a response."""
    tokens_in: int | None = None
    """Tokens that the model read all the same; None when unknown."""
    tokens_out: int | None = None
    """Tokens that it wrote, thoughts among them; None when unknown."""


class EvaluationFailed(GraceError):
    """A judgement failed, and the caller asked for an error (`on_failure="raise"`)."""

    evaluation: Any = None
    """The fallback that would have been returned."""


class EmbedderError(GraceError):
    """An embedder cannot be loaded or used: it is not on disk, its files are wrong, or its result is unusable."""


class ApprovalError(GraceError):
    """A verb on an approval cannot be carried out. Nothing was changed."""

    approval_id: str = ""
    """The id of the approval."""


class UnknownApproval(ApprovalError, LookupError):
    """No approval has this id."""


class AlreadyDecided(ApprovalError):
    """Another decision came first, or the request has ended: expired, cancelled, claimed."""

    state: str = ""
    """The state of the approval."""
    by: str = ""
    """Who decided first; empty without a decision."""
    at: float = 0.0
    """When, in seconds since the epoch."""


class NotEntitled(ApprovalError, PermissionError):
    """This person may not decide the request."""


class ChangedSinceShown(ApprovalError):
    """The arguments of the request changed after the person saw them."""


class EditRefused(ApprovalError, ValueError):
    """The edited arguments do not fit the action, or change a field that identifies it."""


class ActionNotApproved(GraceError):
    """A gate kept an action from running."""

    decision: Any = None
    """The frozen ActionDecision that the gate acted on."""
    request: Any = None
    """The InterventionRequest that was shown, or would have been; None if no reviewer was to be asked."""
    response: Any = None
    """The InterventionResponse; None without one."""


class ActionCancelled(ActionNotApproved):
    """The reviewer refused the action, no reviewer was available, or asking failed."""


class ActionTimedOut(ActionCancelled):
    """No reviewer answered in time. This is not a refusal."""


class ActionDenied(ActionNotApproved):
    """The policy forbids the action (`floor="deny"`); no reviewer was asked."""


class ActionRedirected(ActionNotApproved):
    """The reviewer answered with instructions for the agent; the action did not run."""

    user_input: str = ""
    """The instructions."""


class ActionPending(ActionNotApproved):
    """The request waits for a decision, and the reviewer's `wait="raise"` does not. Call the action again later."""

    approval: Any = None
    """The `Approval`."""


class KeyReused(ActionNotApproved):
    """The key of the action belongs to a request with other arguments. Repeatable actions need a field in the key that tells them apart."""

    approval_id: str = ""
    """The id of that request."""


class ActionOutcomeUnknown(ActionNotApproved):
    """The action was started before and is not started again. Its result is not available."""

    state: str = "running"
    """`done`, `failed`, or `running` if it is unknown whether the action finished."""


def brief(value: object) -> str:
    """Return any value as one line of at most 60 characters, for error messages."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a very large number"  # Python refuses to print integers with thousands of digits
    try:
        text = repr(value[:61] if isinstance(value, str) else value)
    except Exception:  # noqa: BLE001 — a foreign repr may raise anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def is_unit(value: object) -> TypeGuard[float]:
    """Return whether the value is a number from 0 to 1; booleans and NaN are not."""
    if type(value) is float:
        return 0.0 <= value <= 1.0
    return isinstance(value, float | int) and not isinstance(value, bool) and 0 <= value <= 1


def check_unit(name: str, value: object, alternative: str = "") -> None:
    """Refuse a value that is not a number from 0 to 1."""
    if not is_unit(value):
        allowed = f"a number from 0 to 1, {alternative}" if alternative else "a number from 0 to 1"
        # The repr of an arbitrary object would run foreign code.
        shown = brief(value) if isinstance(value, float | int | str | None) else type(value).__name__
        raise ValueError(f"{name} must be {allowed} (got {shown})")


def check_whole(name: str, value: object, least: int = 1, alternative: str = "") -> None:
    """Refuse a value that is not a whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        allowed = f"a whole number >= {least}, {alternative}" if alternative else f"a whole number >= {least}"
        raise ValueError(f"{name} must be {allowed} (got {brief(value)})")


def _rebuild(cls: type[GraceError], args: tuple[Any, ...]) -> GraceError:
    error = cls.__new__(cls, *args)
    super(GraceError, error).__init__(*args)  # a built-in base class such as ImportError has its own state
    return error
