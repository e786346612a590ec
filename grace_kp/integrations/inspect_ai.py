"""Scorers and suites inside of Inspect AI.

    from inspect_ai import Task, task
    from grace_kp.integrations.inspect_ai import inspect_scorer

    @task
    def editing():
        return Task(dataset=…, solver=…, scorer=inspect_scorer(Suite.preset("standard")))

What is expected of a sample stands in its metadata, under `expected`, or comes from a callable.
"""

from grace_kp.integrations.evals._inspect_ai import inspect_scorer, result_from_state

__all__ = ["inspect_scorer", "result_from_state"]
