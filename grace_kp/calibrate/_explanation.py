"""Why a learned confidence is what it is: the contribution of each feature in log-odds, and a sentence about the largest."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NAMED = 3
_LEAST = 0.05
"""Contributions below this many log-odds are not worth a word."""

# What a high and a low value of a feature are called in a reason.
_WORDS = {
    "steps": ("many steps", "few steps"),
    "thoughts": ("many thoughts", "few thoughts"),
    "messages": ("many messages", "few messages"),
    "recoveries": ("many recoveries", "few recoveries"),
    "ends_with_call": ("an open call at the end", "no open call at the end"),
    "ends_with_result": ("a result as the last step", "no result as the last step"),
    "since_call": ("a last call long ago", "a call shortly before"),
    "latency": ("slow steps", "fast steps"),
    "calls": ("many calls", "few calls"),
    "tools": ("many tools", "few tools"),
    "tool_variety": ("varied tools", "the same tools again"),
    "repeated_calls": ("repeated calls", "few repeated calls"),
    "arguments": ("long arguments", "short arguments"),
    "errors": ("many errors", "few errors"),
    "error_rate": ("a high share of errors", "a low share of errors"),
    "error_at_end": ("an error in the last call", "no error in the last call"),
    "trouble": ("results that name problems", "few results that name problems"),
    "empty_results": ("empty results", "few empty results"),
    "repeated_results": ("repeated results", "few repeated results"),
    "objective_length": ("a long objective", "a short objective"),
    "result_length": ("long results", "short results"),
    "last_result_length": ("a long last result", "a short last result"),
    "message_length": ("long messages", "short messages"),
    "messages_length": ("long messages in all", "short messages in all"),
    "thanks": ("thanks in the last message", "no thanks in the last message"),
    "thought_length": ("long thoughts", "short thoughts"),
    "doubt": ("doubt in thoughts", "little doubt in thoughts"),
    "last_doubt": ("doubt in the last thought", "no doubt in the last thought"),
    "apologies": ("apologies in thoughts", "few apologies in thoughts"),
    "answer_length": ("a long answer", "a short answer"),
    "hedging": ("hedging", "little hedging"),
    "refusal": ("words of refusal", "few words of refusal"),
    "asks": ("a question at the end", "no question at the end"),
    "numbers": ("many numbers in the answer", "few numbers in the answer"),
    "answer_is_error": ("an error as the answer", "no error as the answer"),
    "stated": ("a high stated confidence", "a low stated confidence"),
    "grounding": ("an answer in the words of the results", "an answer in other words than the results"),
    "on_topic": ("an answer in the words of the objective", "an answer in other words than the objective"),
    "search_quality": ("good search results", "poor search results"),
    "search_average": ("a high mean search score", "a low mean search score"),
    "search_results": ("many search results", "few search results"),
    "sources": ("many sources", "few sources"),
    "self_evaluation": ("a good self-evaluation", "a poor self-evaluation"),
    "coverage": ("a good coverage of the query", "a poor coverage of the query"),
    "agreement": ("sources that agree", "sources that disagree"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """What one feature, tool or missing value adds to a prediction."""

    name: str
    """The feature; `missing:…` for its lack, `tool:…` for a tool that was called or not."""
    value: float | None
    """The value of the feature; None where it is missing. For a lack or a tool, 1.0 if it is there and 0.0 if not."""
    contribution: float
    """Log-odds that it adds; above 0 it raises the confidence. An average value adds 0."""
    is_high: bool
    """Whether the value is above the mean of the fitted runs."""

    @property
    def words(self) -> str:
        """The value in words: "few errors"."""
        kind, _, rest = self.name.partition(":")
        if kind == "tool":
            return f"{rest} was called" if self.is_high else f"{rest} was not called"
        if kind == "missing":
            return f"no {_noun(rest)}" if self.is_high else f"a known {_noun(rest)}"
        high, low = _WORDS.get(self.name, (f"high {_noun(self.name)}", f"low {_noun(self.name)}"))
        return high if self.is_high else low


@dataclass(frozen=True, slots=True)
class Explanation:
    """A prediction and its parts. `intercept` and the contributions add up to `logit`; with `calibration` they give `confidence`."""

    confidence: float
    """The prediction, 0 to 1."""
    moment: str
    intercept: float
    """Log-odds of a run whose features are all average."""
    parts: tuple[Part, ...]
    """In the order of the columns."""
    logit: float
    """Log-odds before calibration."""
    calibration: float
    """Log-odds that the calibration adds."""
    runs: int
    """Number of runs that the profile was fitted on."""

    @property
    def largest(self) -> tuple[Part, ...]:
        """The parts, those with the largest contributions first; those that are shown as equal by name."""
        # The last bits of a fit differ between processors, and must not change what a person reads.
        return tuple(sorted(self.parts, key=lambda part: (-round(abs(part.contribution), 1), part.name)))

    @property
    def contributions(self) -> dict[str, float]:
        """Everything that adds up to the log-odds of the confidence, by name: `intercept`, the parts, and `calibration`."""
        parts = {part.name: part.contribution for part in self.parts}
        return {"intercept": self.intercept, **parts, "calibration": self.calibration}

    @property
    def reason(self) -> str:
        """One sentence: the largest contributions in each direction."""
        raised = [part for part in self.largest if part.contribution >= _LEAST][:MAX_NAMED]
        lowered = [part for part in self.largest if part.contribution <= -_LEAST][:MAX_NAMED]
        named = [f"{verb} by {_listed(parts)}" for verb, parts in (("raised", raised), ("lowered", lowered)) if parts]
        return f"Learned from {self.runs} runs: {'; '.join(named) or 'nothing stands out'}"


def _listed(parts: list[Part]) -> str:
    return ", ".join(f"{part.words} ({part.contribution:+.1f})".replace("-", "−") for part in parts)


def _noun(name: str) -> str:
    return name.replace("_", " ")
