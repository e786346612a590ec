"""Scorers of autoevals, or anything that is called like them, inside of a suite.

    from autoevals import Levenshtein
    from grace_kp import scorers as sc
    from grace_kp.integrations.autoevals import AutoevalsScorer

    suite = sc.Suite([sc.Entry(AutoevalsScorer(Levenshtein(), expected=lambda case: case.answer), weight=1.0, threshold=0.8)])

Autoevals itself is not imported here: the scorer is yours.
"""

from grace_kp.integrations.evals._autoevals import AutoevalsScorer

__all__ = ["AutoevalsScorer"]
