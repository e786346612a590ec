"""Confidence learned from labelled runs, thresholds that keep a stated promise, and the means to see whether they still do.

Everything here works on traces and labels. `runtime` applies a profile to live runs; nothing here asks a model.
"""

from __future__ import annotations

__all__ = []
