"""The bodies of requests to the API. Unknown fields are refused by name, and no value is taken for one of another type."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

Digest = Annotated[str, Field(min_length=1, max_length=200, description="Digest of the arguments that were shown.")]
Words = Annotated[str, Field(max_length=10_000, description="Kept with the decision. Recognised secrets are removed.")]
Unseen = Annotated[bool, Field(description="Consent although the JSON of the approval does not show some arguments.")]
Share = Annotated[float, Field(ge=0, le=1)]


class Body(BaseModel):
    """A JSON object."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Decision(Body):
    """A body of a verb on an approval."""

    words_field: ClassVar[str] = "note"
    """Name of the field that holds the words of the person."""

    def arguments(self) -> dict[str, Any]:
        """Return the fields as the arguments of `perform`."""
        fields = self.model_dump(exclude_unset=True, exclude={"unseen"})
        return {"words" if name == self.words_field else name: value for name, value in fields.items()}


class Approve(Decision):
    """Consent to the arguments that were shown."""

    digest: Digest
    note: Words = ""
    unseen: Unseen = False


class Edit(Decision):
    """New arguments, and consent to the result."""

    digest: Digest
    changes: Annotated[dict[str, Any], Field(min_length=1, max_length=1_000)]
    """New values by parameter name, encoded as in `arguments` of the approval."""
    note: Words = ""
    unseen: Unseen = False


class Reject(Decision):
    """Refuse the action."""

    words_field = "reason"
    reason: Words = ""
    digest: Digest | None = None


class Respond(Decision):
    """Answer with instructions for the agent; the action does not run."""

    words_field = "words"
    words: Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"[^\s\x00-\x1f\x85]")]
    """The instructions."""
    digest: Digest | None = None


class Pass(Decision):
    """Let the agent go on without the action, or have the gate assess the call again."""

    note: Words = ""
    digest: Digest | None = None


class Withdraw(Decision):
    """Cancel a request, or a decision that nobody has claimed."""

    words_field = "reason"
    reason: Words = ""


class Reconcile(Decision):
    """State whether an action whose outcome is unknown has happened."""

    revision: Annotated[int, Field(ge=1)]
    """The revision that was shown: the digest does not tell two executions of one action apart."""
    happened: bool
    note: Words = ""


class Shown(Body):
    """An approval with the digest that was shown."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    digest: Digest


class Several(Body):
    """A verb on several approvals, each named with what was shown of it. Those with unseen arguments are approved alone."""

    verb: Literal["approve", "reject", "respond", "skip", "retry", "withdraw"]
    approvals: Annotated[list[Shown], Field(min_length=1, max_length=200)]
    note: Words = ""
    """The note, the reason, or the words to the agent."""


class Label(Body):
    """Whether a run was right."""

    correct: StrictBool | Share
    """True for right, false for wrong, or a number from 0 (wrong) to 1 (right)."""
    source: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,39}$")] = "user"
    """Where the label comes from: `user`, `test`, `audit`, `outcome`, or a name of your own. Some are reserved for people."""
    note: Annotated[str, Field(max_length=2_000)] | None = None
    """A remark. Recognised secrets are removed."""
    probability: Annotated[float, Field(gt=0, le=1)] | None = None
    """For an audit: the probability with which the run was chosen to be labelled."""
