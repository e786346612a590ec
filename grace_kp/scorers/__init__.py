"""Scorers (SPEC §8): how good what an agent did is, one aspect each, from 0 to 1, and why."""

from grace_kp.scorers._cases import Case, CaseError, read_cases
from grace_kp.scorers._changes import AntiHallucination
from grace_kp.scorers._completed import OnTraces
from grace_kp.scorers._content import ContentQuality, OperationResult
from grace_kp.scorers._diagnosis import Result
from grace_kp.scorers._edits import Block, EditExpectation, EditResult, Operation
from grace_kp.scorers._entry import Entry, SuiteError, register
from grace_kp.scorers._evaluation import evaluate_cases
from grace_kp.scorers._patterns import PatternError
from grace_kp.scorers._reports import html_report, junit_report
from grace_kp.scorers._scorers import OperationAccuracy, ResponseTime, Scorer, TargetBlockPrecision
from grace_kp.scorers._suite import Suite, SuiteReport, assert_passes
from grace_kp.scorers._traces import as_result, operations_from_trace, result_from_trace

__all__ = [
    "AntiHallucination",
    "Block",
    "Case",
    "CaseError",
    "ContentQuality",
    "EditExpectation",
    "EditResult",
    "Entry",
    "OnTraces",
    "Operation",
    "OperationAccuracy",
    "OperationResult",
    "PatternError",
    "ResponseTime",
    "Result",
    "Scorer",
    "Suite",
    "SuiteError",
    "SuiteReport",
    "TargetBlockPrecision",
    "as_result",
    "assert_passes",
    "evaluate_cases",
    "html_report",
    "junit_report",
    "operations_from_trace",
    "read_cases",
    "register",
    "result_from_trace",
]
