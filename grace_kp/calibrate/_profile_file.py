"""Files of learned profiles: their fields, checked as they are read. Loads pydantic, so that applying a profile need not.

Every number must be one that a fit can produce, every name known; an error names the file and the field.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field

from grace_kp.calibrate._columns import FLAT, Columns
from grace_kp.calibrate._facts import HASH_DIGITS
from grace_kp.calibrate._features import MOMENTS
from grace_kp.calibrate._head import SCHEMA, VERSION, Head, ProfileFileError
from grace_kp.calibrate._logistic import MAX_LOGIT, Logistic
from grace_kp.confidence import Thresholds
from grace_kp.errors import brief
from grace_kp.trace import SourceFields, SourceFile, object_without_duplicates

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import NoReturn

MAX_SLOPE = 1_000.0
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
LogOdds = Annotated[float, Field(ge=-MAX_LOGIT, le=MAX_LOGIT)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Hash = Annotated[str, Field(pattern=f"^[0-9a-f]{{{HASH_DIGITS}}}$")]


class _Strict(SourceFields):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Column(_Strict):
    name: str
    fill: Finite
    centre: Finite
    scale: Annotated[float, Field(ge=FLAT, allow_inf_nan=False)]
    low: Finite
    high: Finite
    weight: LogOdds


class _Calibration(_Strict):
    slope: Annotated[float, Field(gt=0, le=MAX_SLOPE)]
    offset: LogOdds


class _Head(_Strict):
    runs: Count
    rows: Count
    penalty: Positive
    intercept: LogOdds
    calibration: _Calibration
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


class _Profile(_Strict):
    fitted_on: _FittedOn
    quality: dict[str, Any]
    thresholds: dict[str, float | str] | None
    promise: _Promise | None
    heads: dict[str, _Head]
    fitted_runs: list[Hash] | None = None
    digest: str | None = None


def read_profile(path: str | os.PathLike[str]) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of the profile in a file, as `CalibratedProfile.load` reads it, and the digest that the file states, if any."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        content = json.loads(
            text, object_pairs_hook=object_without_duplicates, parse_constant=_refuse, parse_float=_finite
        )
    except UnicodeDecodeError:
        raise ProfileFileError(f"{file}: is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ProfileFileError(f"{file}: is not JSON: {error}") from None
    _check_kind(SourceFile(file, content, ProfileFileError))
    rest = {name: value for name, value in content.items() if name not in {"schema", "version"}}
    source = SourceFile(file, rest, ProfileFileError)
    fields = source.parse(_Profile)
    unknown = [moment for moment in MOMENTS if moment not in fields.heads] or [
        m for m in fields.heads if m not in MOMENTS
    ]
    if unknown:
        raise source.error(f"must have the moments {' and '.join(MOMENTS)}; see {unknown[0]!r}", ("heads",))
    try:
        thresholds = None if fields.thresholds is None else Thresholds.from_dict(fields.thresholds)
    except ValueError as error:
        raise source.error(str(error), ("thresholds",)) from None
    _check_thresholds(source, fields)
    arguments = {
        "heads": {moment: _head(source, moment, fields.heads[moment]) for moment in MOMENTS},
        "fitted_on": content["fitted_on"],
        "quality": fields.quality,
        "thresholds": thresholds,
        "promise": content["promise"],
        "fitted_runs": None if fields.fitted_runs is None else frozenset(fields.fitted_runs),
    }
    return arguments, fields.digest


def check_digest(path: str | os.PathLike[str], stated: str | None, compute: Callable[[], str]) -> None:
    """Refuse a file whose content was changed after `save` had written it.

    Raises:
        ProfileFileError: the file states another digest, or its content has none.
    """
    try:
        computed = compute()
    except RecursionError:
        raise ProfileFileError(f"{path}: is nested too deeply") from None
    if stated is not None and stated != computed:
        raise ProfileFileError(
            f"{path}: digest: the file was changed after it was saved: it states {brief(stated)}, and its content has {computed}; "
            "fit again, or save the changed profile by `CalibratedProfile.save`"
        )


def _check_kind(source: SourceFile) -> None:
    content = source.content
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = brief(content.get("schema")) if isinstance(content, dict) else brief(content)
        raise source.error(f"is no learned profile: schema must be {SCHEMA!r} (got {found})")
    version = content.get("version")
    if type(version) is int and version > VERSION:
        raise source.error(
            f"is of version {version}, and this library reads {VERSION}: install a newer one", ("version",)
        )
    if version != VERSION or type(version) is not int:
        raise source.error(f"must be {VERSION} (got {brief(version)})", ("version",))


def _check_thresholds(source: SourceFile, fields: _Profile) -> None:
    """Refuse thresholds that are incomplete, whose missing levels would be milder defaults, or that differ from those of the promise."""
    stated, promise = fields.thresholds, fields.promise
    missing = [name for name in ("silent", "notify", "confirm") if stated is not None and name not in stated]
    if missing:
        raise source.error(f"must state every level; {missing[0]} is missing", ("thresholds",))
    if promise is not None and (stated is None or promise.thresholds != stated):
        raise source.error(
            "must be those for which the promise was computed; fit again to change them", ("thresholds",)
        )


def _head(source: SourceFile, moment: str, fields: _Head) -> Head:
    names = [column.name for column in fields.columns]
    figures = np.array(
        [[column.fill, column.centre, column.scale, column.low, column.high] for column in fields.columns],
        dtype=np.float64,
    )
    try:
        if any(column.low > column.high for column in fields.columns):
            raise ValueError("low must not be above high")
        outside = [column.name for column in fields.columns if not column.low <= column.centre <= column.high]
        if outside:
            raise ValueError(f"centre must be from low to high, not as in {outside[0]!r}")
        if len(set(names)) < len(names):
            raise ValueError("a name occurs twice")
        columns = Columns.build(names, figures.reshape(len(names), 5).T.copy())
    except ValueError as error:
        raise source.error(str(error), ("heads", moment, "columns")) from None
    regression = Logistic(fields.intercept, np.array([column.weight for column in fields.columns], dtype=np.float64))
    slope, offset = fields.calibration.slope, fields.calibration.offset
    return Head(moment, columns, regression, slope, offset, fields.penalty, fields.runs, fields.rows)


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text:.40} is too large")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
