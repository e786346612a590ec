"""A pytest plugin for `run.py`: attaches our handler to every LangChain run of a test session, and writes down how each test ended.

Environment: FRAMEWORK_RESULTS names the JSON file for the outcomes; FRAMEWORK_HANDLER=1 attaches the handler.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from contextvars import ContextVar
from pathlib import Path

_outcomes: dict[str, str] = {}
_recorded: Counter[str] = Counter()


def pytest_configure(config):
    """Attach the handler in every process that runs tests."""
    if os.environ.get("FRAMEWORK_HANDLER") != "1":
        return
    from langchain_core.tracers.context import register_configure_hook

    import grace_kp as gk
    from grace_kp.integrations.langchain import GraceCallbackHandler

    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None)
    grace.on_complete(lambda trace: _recorded.update([str(trace.grace["status"])]))
    config.grace_everywhere = grace
    # A default value reaches every context and every thread.
    everywhere = ContextVar("grace_kp_frameworks", default=GraceCallbackHandler(grace))  # noqa: B039
    register_configure_hook(everywhere, inheritable=True)


def pytest_runtest_logreport(report):
    """Keep the worst phase of each test."""
    outcome = "error" if report.failed and report.when != "call" else report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "xfailed" if report.skipped else "xpassed"
    if report.when == "call" or outcome != "passed":
        _outcomes[report.nodeid] = outcome


def pytest_unconfigure(config):
    """Write the outcomes, and what was recorded in this process."""
    results = os.environ.get("FRAMEWORK_RESULTS")
    if results is None:
        return
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        Path(results).write_text(json.dumps(_outcomes))
    grace = getattr(config, "grace_everywhere", None)
    if grace is not None:
        from grace_kp.record import TROUBLES

        grace.flush()
        counts = {"traces": dict(_recorded), "troubles": dict(TROUBLES.counts)}
        Path(f"{results}.{worker or 'main'}.recorded").write_text(json.dumps(counts))
