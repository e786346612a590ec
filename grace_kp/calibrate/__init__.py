"""Confidence learned from labelled runs, thresholds that keep a stated promise, and the means to see whether they still do.

Everything here works on traces and labels. `runtime` applies a profile to live runs; nothing here asks a model.
"""

from __future__ import annotations

from grace_kp.calibrate._action_labels import ActionLabels, LabelledAction, action_labels, read_actions
from grace_kp.calibrate._actions import ActionModel, fit_action_features, fit_actions
from grace_kp.calibrate._assess import Assessment, Predictor, RiskPoint, assess, bin_interval, risk_curve
from grace_kp.calibrate._calibration import Calibration, calibrate_actions, calibrate_runs, lacking_labels
from grace_kp.calibrate._comparison import ReplayReport
from grace_kp.calibrate._drift import DriftReport, FeatureShift, drift
from grace_kp.calibrate._features import FEATURES, MOMENTS, Features, features
from grace_kp.calibrate._fit import fit
from grace_kp.calibrate._gated import provenance
from grace_kp.calibrate._head import Explanation, Part, ProfileFileError
from grace_kp.calibrate._labels import Label, LabelledRun, Labels, labels, read_labelled, thin, unit_of
from grace_kp.calibrate._monitor import Alarm, Monitor
from grace_kp.calibrate._profile import CalibratedProfile
from grace_kp.calibrate._replay import ReplayPolicy, replay
from grace_kp.calibrate._report import calibration_page
from grace_kp.calibrate._reviewers import ReviewerReport, reviewers
from grace_kp.calibrate._risk import (
    Promise,
    PromisedLevel,
    RiskThresholds,
    labels_needed,
    risk_thresholds,
    tool_thresholds,
)

__all__ = [
    "FEATURES", "MOMENTS", "ActionLabels", "ActionModel", "Alarm", "Assessment", "CalibratedProfile", "Calibration",
    "DriftReport", "Explanation", "FeatureShift", "Features", "Label", "LabelledAction", "LabelledRun", "Labels",
    "Monitor", "Part", "Predictor", "ProfileFileError", "Promise", "PromisedLevel", "ReplayPolicy", "ReplayReport",
    "ReviewerReport", "RiskPoint", "RiskThresholds", "action_labels", "assess", "bin_interval", "calibrate_actions",
    "calibrate_runs", "calibration_page", "drift", "features", "fit", "fit_action_features", "fit_actions", "labels",
    "labels_needed", "lacking_labels", "provenance", "read_actions", "read_labelled", "replay", "reviewers",
    "risk_curve", "risk_thresholds", "thin", "tool_thresholds", "unit_of",
]  # fmt: skip
