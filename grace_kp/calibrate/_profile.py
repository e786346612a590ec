"""The learned profile: a confidence in [0, 1] for a trace, its explanation, the facts of the fitted runs, and its file.

It is saved as plain JSON, with a digest. `_fit` fits it; `runtime` applies it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from grace_kp.calibrate._actions import ActionFields, ActionModel
from grace_kp.calibrate._facts import HASH_DIGITS, KINDS, facts_of, hash_of, listed
from grace_kp.calibrate._features import FEATURES, MOMENTS, Features, features, of_search
from grace_kp.calibrate._head import (
    FIGURES,
    FLAT,
    SCHEMA,
    VERSION,
    CalibrationFields,
    Columns,
    Count,
    Finite,
    Head,
    LogOdds,
    Positive,
    ProfileFileError,
    Share,
    StrictFields,
)
from grace_kp.calibrate._logistic import Logistic
from grace_kp.calibrate._risk import LEVELS
from grace_kp.calibrate._samples import json_form
from grace_kp.confidence import PROFILES, ConfidenceScore, Thresholds, factors_from_trace
from grace_kp.errors import brief
from grace_kp.trace import SourceFields, SourceFile, object_without_duplicates, write_whole

if TYPE_CHECKING:
    import os

    from grace_kp.calibrate._features import Moment
    from grace_kp.calibrate._head import Explanation
    from grace_kp.calibrate._samples import Floats
    from grace_kp.confidence import ActionFeatures, ConfidenceFactors
    from grace_kp.trace import ReasoningTrace

    Trace = Mapping[str, Any] | ReasoningTrace


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """Predictions for the labelled rows, each by a model that saw no row of the same task."""

    confidence: Floats
    correct: Floats
    groups: tuple[Any, ...]
    weights: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CalibratedProfile:
    """A confidence learned from labelled runs. Fit it with `fit`, or load it with `load`; it never changes."""

    name: ClassVar[str] = "calibrated"

    heads: Mapping[str, Head] = field(default_factory=dict, repr=False)
    """The regression of each moment: `"end"` for a run that has ended, `"action"` for an open run before an action. Empty if the profile
    judges actions only; runs then have the confidence of the formula `grace`."""
    action: ActionModel | None = field(default=None, repr=False)
    """The confidence in single actions, which gates use instead of the run's before an action; None without one."""
    fitted_on: Mapping[str, Any]
    """Facts of the fitted runs: `runs`, `tasks`, `agents`, `models`, `tools`, `domains`, `from`, `to`, `fitted_at`, `labels` and `notes`."""
    quality: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the out-of-fold predictions, by moment."""
    thresholds: Thresholds | None = None
    """Thresholds that were chosen with it; None if there are none."""
    promise: Mapping[str, Any] | None = None
    """The promise of the thresholds: `kind`, `risks`, `delta`, `moment`, `n`, `notes`; None without a promise."""
    predictions: Mapping[str, OutOfFold] = field(default_factory=dict, repr=False)
    """The out-of-fold predictions, by moment. Not saved."""
    fitted_runs: frozenset[str] | None = field(default=None, repr=False)
    """Hashes of the ids and objectives of the runs it was fitted on, at most 20,000; None if they are unknown, as in files of earlier versions."""

    def predict(self, trace: Trace | Features, *, moment: Moment = "end") -> float:
        """Return the confidence of a run, 0 to 1. It is not rounded.

        Args:
            trace: the trace, its dict form, or its features.
            moment: `"end"` for a run that has ended, `"action"` for an open run before an action.

        Raises:
            ValueError: the moment is unknown, or not the moment of the features.
        """
        return self._head(moment).predict(self._features(trace, moment))

    def explain(self, trace: Trace | Features, *, moment: Moment = "end") -> Explanation:
        """Return the confidence of a run with the contribution of each feature, in log-odds. It takes, and refuses, what `predict` does."""
        return self._head(moment).explain(self._features(trace, moment))

    def confidence(self, document: Trace, *, moment: Moment = "end") -> ConfidenceScore:
        """Return the confidence of a run as a score with its factors and its reason; the score is rounded to three decimals."""
        factors = factors_from_trace(document)
        return _score(self.explain(document, moment=moment), factors) if self.heads else self.calculate(factors)

    def action_confidence(self, action: ActionFeatures, factors: ConfidenceFactors) -> ConfidenceScore:
        """Return the confidence in an action as a score with its reason and, by their words, its contributions in log-odds.

        Args:
            action: what is known before it.
            factors: those of the run so far, which the score keeps.

        Raises:
            ValueError: the profile has no confidence in actions.
        """
        if self.action is None:
            raise ValueError("the profile has no confidence in actions; fit one by `fit_actions`")
        score, contributions = round(self.action.predict(action), 3), dict(self.action.explain(action))
        return ConfidenceScore(score, factors, reason=self.action.describe(action), contributions=contributions)

    def calculate(self, factors: ConfidenceFactors) -> ConfidenceScore:
        """Return the confidence at the end of a run of which only the factors are known. Every other feature counts as missing."""
        if not self.heads:
            score = PROFILES["grace"].calculate(factors)
            return dataclasses.replace(
                score, reason=f"The profile judges actions only, so this is the formula's. {score.reason}".strip()
            )
        found: dict[str, float | None] = {"calls": math.log1p(factors.tool_execution_count)}
        if factors.tool_execution_count:
            failed = factors.tool_execution_count - factors.tool_success_count
            found["errors"] = math.log1p(failed)
            found["error_rate"] = (failed + 0.5) / (factors.tool_execution_count + 1)
        if factors.search_made:
            found.update(of_search(factors))
        if factors.self_evaluated:
            found["self_evaluation"] = factors.llm_self_confidence
        if factors.coverage_evaluated:
            found["coverage"] = factors.query_coverage
        if factors.agreement_evaluated:
            found["agreement"] = factors.source_agreement
        return _score(self.explain(Features("end", tuple(found.get(name) for name in FEATURES))), factors)

    def mismatches(self, document: Trace) -> tuple[str, ...]:
        """Return a sentence for each way in which a run differs from those the profile was fitted on: agent, model, tools, task domain. The
        runs of its confidence in actions are compared, too.

        A name that is missing is a difference, too: of agents, models or tools in `fitted_on`, or of the agent or the model in the run where
        `fitted_on` has some. Profiles of earlier versions state no domains; those are not compared.
        """
        found = facts_of(document)
        compared = [
            ("the profile", kind, self.fitted_on.get(kind, found[kind] if kind == "domains" else None))
            for kind in KINDS
        ]
        own = {} if self.action is None or self.action.fitted_on == self.fitted_on else self.action.fitted_on
        # It compares the model of the agent itself.
        compared += [
            ("the confidence in actions", kind, own[kind]) for kind in KINDS if kind in own and kind != "models"
        ]
        sentences = []
        for what, kind, known in compared:
            word = KINDS[kind]
            if not isinstance(known, list | tuple) or (kind == "agents" and not known):
                sentences.append(f"{what} does not state which {kind} it was fitted on")
            elif unknown := [name for name in found[kind] if name not in known]:
                sentences.append(
                    f"the {word} is now {listed(unknown, UNNAMED)}; {what} was fitted on {listed(known, UNNAMED)}"
                )
            elif known and not found[kind] and kind != "tools":  # a run may not have called a tool yet
                sentences.append(f"the {word} is not recorded; {what} was fitted on {listed(known, UNNAMED)}")
        return tuple(sentences)

    def was_fitted_on(self, trace: Trace) -> bool:
        """Return whether the profile was fitted on this run, by its id; False where `fitted_runs` is None."""
        return hash_of(trace) in (self.fitted_runs or ())

    @property
    def digest(self) -> str:
        """Digest of the content, `sha256:` and 64 hexadecimal digits; the layout of a file does not matter. See the setting `profile_digest`."""
        # Other programs write 1.0 as 1, so equal numbers count as the same content.
        content = json.loads(json.dumps(self.to_dict(), allow_nan=False), parse_float=_number)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def out_of_fold(self, moment: Moment = "end") -> tuple[Floats, Floats, tuple[Any, ...]]:
        """Return confidence, label and group of each labelled row, as predicted by models that saw no row of its task.

        Raises:
            ValueError: the profile was loaded from a file, which does not keep them.
        """
        found = self.predictions.get(moment)
        if found is None:
            raise ValueError(f"there are no out-of-fold predictions for {moment!r}: a saved profile does not keep them")
        return found.confidence, found.correct, found.groups

    def with_thresholds(
        self, thresholds: Thresholds | None, promise: Mapping[str, Any] | None = None
    ) -> CalibratedProfile:
        """Return the same profile with thresholds, and with what they promise. The promise keeps them and those of single tools, so that a file
        in which only they were changed is refused."""
        if isinstance(promise, Mapping):
            tools = {} if self.action is None else json_form(self.action.thresholds)
            stated = {"thresholds": None if thresholds is None else thresholds.to_dict()}
            promise = {**promise, **stated, **({"tool_thresholds": tools} if tools else {})}
        return dataclasses.replace(self, thresholds=thresholds, promise=promise)

    def with_action(self, model: ActionModel | None) -> CalibratedProfile:
        """Return the same profile with a confidence in single actions. Thresholds and a promise for that of before are dropped."""
        changed = dataclasses.replace(self, action=model)
        is_about_it = (self.promise or {}).get("unit") == "action" and model is not self.action
        return changed.with_thresholds(None) if is_about_it else changed

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form. Without a confidence in actions it is that of version 1, which earlier versions of the library read, too."""
        action = {} if self.action is None else {"action": self.action.to_dict()}
        return {
            "schema": SCHEMA,
            "version": VERSION if action else 1,
            "fitted_on": dict(self.fitted_on),
            **({} if self.fitted_runs is None else {"fitted_runs": sorted(self.fitted_runs)}),
            "quality": dict(self.quality),
            "thresholds": None if self.thresholds is None else self.thresholds.to_dict(),
            "promise": None if self.promise is None else dict(self.promise),
            "heads": {moment: head.to_dict() for moment, head in self.heads.items()},
            **action,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile as JSON, with its digest. The file is replaced as a whole; out-of-fold predictions are not kept.

        Raises:
            OSError: the file cannot be written.
        """
        content = {**self.to_dict(), "digest": self.digest}
        write_whole(path, json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CalibratedProfile:
        """Read a profile that `save` wrote. It predicts exactly what the saved profile predicts.

        Raises:
            ProfileFileError: the file is not a profile, is of a newer version, holds a value that cannot be used, or does not have the
                digest that it states.
            OSError: the file cannot be read.
        """
        source, fields = _read_fields(Path(path))
        heads = {moment: _head(source, moment, found) for moment, found in fields.heads.items()}
        action = None if fields.action is None else ActionModel.of_fields(fields.action)
        if action is None or heads:
            unknown = next((moment for moment in (*MOMENTS, *heads) if (moment in heads) != (moment in MOMENTS)), None)
            if unknown is not None:
                raise source.error(f"must have the moments {' and '.join(MOMENTS)}; see {unknown!r}", ("heads",))
        try:
            profile = cls(
                heads=heads,
                action=action,
                fitted_on=source.content["fitted_on"],
                quality=fields.quality,
                thresholds=None if fields.thresholds is None else Thresholds.from_dict(fields.thresholds),
                promise=source.content["promise"],
                fitted_runs=None if fields.fitted_runs is None else frozenset(fields.fitted_runs),
            )
        except ValueError as error:
            raise source.error(str(error), ("thresholds",)) from None
        _check_thresholds(source, fields)
        try:
            computed = profile.digest
        except (ValueError, RecursionError) as error:  # a number that is not finite is one only in Python
            raise source.error(f"cannot be written as JSON again: {error}") from None
        if fields.digest not in {None, computed}:
            raise source.error(
                f"the file was changed after it was saved: it states {brief(fields.digest)}, and its content has {computed}; "
                "fit again, or save the changed profile by `CalibratedProfile.save`",
                ("digest",),
            )
        return profile

    def _head(self, moment: str) -> Head:
        head = self.heads.get(moment)
        if head is None and not self.heads:
            raise ValueError("the profile judges actions only: it has no confidence in runs")
        if head is None:
            raise ValueError(f"moment must be {' or '.join(map(repr, MOMENTS))} (got {moment!r})")
        return head

    def _features(self, trace: Trace | Features, moment: Moment) -> Features:
        if not isinstance(trace, Features):
            return features(trace, moment=moment)
        if trace.moment != moment:
            raise ValueError(f"these are features of the moment {trace.moment!r}, not of {moment!r}")
        return trace


def _score(explanation: Explanation, factors: ConfidenceFactors) -> ConfidenceScore:
    score, contributions = round(explanation.confidence, 3), explanation.contributions
    return ConfidenceScore(score, factors, reason=explanation.reason, contributions=contributions)


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


UNNAMED = "runs that name none"
Hash = Annotated[str, Field(pattern=f"^[0-9a-f]{{{HASH_DIGITS}}}$")]


class _Column(StrictFields):
    name: str
    fill: Finite
    centre: Finite
    scale: Annotated[float, Field(ge=FLAT, allow_inf_nan=False)]
    low: Finite
    high: Finite
    weight: LogOdds


class _Head(StrictFields):
    runs: Count
    rows: Count
    penalty: Positive
    intercept: LogOdds
    calibration: CalibrationFields
    columns: list[_Column]


class _Open(SourceFields):
    """An object whose fields all may be missing, and which may have others."""

    model_config = ConfigDict(extra="allow", strict=True)


class _FittedOn(_Open):
    agents: list[str] | None = None
    models: list[str] | None = None
    tools: list[str] | None = None
    domains: list[str] | None = None
    runs: Count = 1
    tasks: Count = 1
    fitted_at: str = ""


class _Promise(_Open):
    kind: str = ""
    risks: dict[str, Share] | None = None
    delta: Share = 0.0
    moment: str = ""
    thresholds: dict[str, float | str] | None = None
    tool_thresholds: dict[str, dict[str, float | str]] = Field(default_factory=dict)


class _Profile(StrictFields):
    fitted_on: _FittedOn
    quality: dict[str, Any]
    thresholds: dict[str, float | str] | None
    promise: _Promise | None
    heads: dict[str, _Head]
    fitted_runs: list[Hash] | None = None
    action: ActionFields | None = None
    digest: str | None = None


def _read_fields(path: Path) -> tuple[SourceFile, _Profile]:
    """Return the content of a file and its fields, but for `schema` and `version`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=object_without_duplicates)
    except (ValueError, RecursionError) as error:
        is_text = not isinstance(error, UnicodeDecodeError)
        raise ProfileFileError(f"{path}: is not {f'JSON: {error}' if is_text else 'UTF-8'}") from None
    source = SourceFile(path, content, ProfileFileError)
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = brief(content.get("schema")) if isinstance(content, dict) else brief(content)
        raise source.error(f"is not a learned profile: schema must be {SCHEMA!r} (got {found})")
    version = content.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        problem = f"must be from 1 to {VERSION} (got {brief(version)})"
        if type(version) is int and version > VERSION:
            problem = f"is of version {version}, and this library reads {VERSION}: install a newer one"
        raise source.error(problem, ("version",))
    rest = {name: value for name, value in content.items() if name not in {"schema", "version"}}
    source = SourceFile(path, rest, ProfileFileError)
    fields = source.parse(_Profile)
    if (fields.action is None) != (version == 1):
        problem = f"must {'not ' if fields.action is None else ''}be missing in a file of this version"
        raise source.error(problem, ("action",))
    return source, fields


def _check_thresholds(source: SourceFile, fields: _Profile) -> None:
    """Refuse thresholds that are incomplete, whose missing levels would be milder defaults, or that differ from the thresholds of the promise."""
    stated, promise = fields.thresholds, fields.promise
    missing = [name for name in LEVELS if stated is not None and name not in stated]
    if missing:
        raise source.error(f"must state every level; {missing[0]} is missing", ("thresholds",))
    problem = "must be those for which the promise was computed; fit again to change them"
    if promise is not None and (stated is None or promise.thresholds != stated):
        raise source.error(problem, ("thresholds",))
    if promise is not None and promise.tool_thresholds != (fields.action.thresholds if fields.action else {}):
        raise source.error(problem, ("action", "thresholds"))


def _head(source: SourceFile, moment: str, fields: _Head) -> Head:
    names = [column.name for column in fields.columns]
    figures = np.array([[getattr(each, name) for each in fields.columns] for name in FIGURES], dtype=np.float64)
    try:
        for column in fields.columns:
            if column.low > column.high:
                raise ValueError("low must not be above high")
            if not column.low <= column.centre <= column.high:
                raise ValueError(f"centre must be from low to high, not as in {column.name!r}")
        if len(set(names)) < len(names):
            raise ValueError("a name occurs twice")
        columns = Columns.build(names, figures)
    except ValueError as error:
        raise source.error(str(error), ("heads", moment, "columns")) from None
    regression = Logistic(fields.intercept, np.array([each.weight for each in fields.columns], dtype=np.float64))
    slope, offset = fields.calibration.slope, fields.calibration.offset
    return Head(moment, columns, regression, slope, offset, fields.penalty, fields.runs, fields.rows)
