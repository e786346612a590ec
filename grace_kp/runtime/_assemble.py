"""Builds the pipeline of a runtime from its settings and models. What the pipeline does is in `_pipeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.confidence import ConfidenceCalculator, Thresholds
from grace_kp.record import Documents, Recorder
from grace_kp.runtime._pipeline import Assessor, Pipeline
from grace_kp.value import ValueScorer

if TYPE_CHECKING:
    from grace_kp.runtime._models import Models
    from grace_kp.runtime._scoring import TraceScorers
    from grace_kp.settings import Settings


def thresholds_of(settings: Settings) -> Thresholds:
    """Return the thresholds that the settings name."""
    return Thresholds(settings.threshold_silent, settings.threshold_notify, settings.threshold_confirm)


def make_pipeline(
    settings: Settings, thresholds: Thresholds, models: Models, recorder: Recorder, scorers: TraceScorers | None
) -> Pipeline:
    """Return the pipeline that settles the runs of `recorder`."""
    scorer = ValueScorer(
        models.embedder,
        max_elements=settings.novelty_cache_size,
        ttl_seconds=settings.novelty_cache_ttl or None,
    )
    return Pipeline(
        documents=Documents(
            privacy_level=settings.privacy_level, visibility=settings.visibility, max_text=settings.max_text
        ),
        assessor=Assessor(ConfidenceCalculator(profile=settings.profile, thresholds=thresholds), scorer),
        sample_rate=settings.sample_rate,
        recorder=recorder,
        judge=models.judge,
        embedder=models.embedder,
        scorers=scorers,
    )
