"""Scorers and suites inside of pydantic-evals.

    from pydantic_evals import Case, Dataset
    from grace_kp.integrations.pydantic_evals import SuiteEvaluator

    dataset = Dataset(name="editing", cases=[Case(inputs=…, expected_output=EditExpectation(…))], evaluators=[SuiteEvaluator("standard")])
    report = dataset.evaluate_sync(edit)          # edit returns an EditResult or a trace

The evaluator is loaded when it is asked for, and needs pydantic-evals.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grace_kp.integrations.evals._pydantic_evals import SuiteEvaluator as SuiteEvaluator

__all__ = ["SuiteEvaluator"]


def __getattr__(name: str) -> Any:
    if name == "SuiteEvaluator":
        return importlib.import_module("grace_kp.integrations.evals._pydantic_evals").SuiteEvaluator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
