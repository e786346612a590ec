"""Addresses of runs, their steps and the requests of their gates. Ids may be any text, so they are quoted."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from grace_kp.trace import Links

PREFIX = "kp:trace:"
MAX_ID = 500
"""Characters of an id that becomes a link."""


def run_address(root: str, name: str) -> str:
    """Return the address of a run.

    Args:
        root: the path that the application is mounted under.
        name: the id of the run.
    """
    return f"{root}/runs/{quote(name, safe=':', errors='replace')}"


def links_from(root: str) -> Links:
    """Return the links of a page about runs. An id that no trace can have is no link."""

    def run(name: str) -> str | None:
        return run_address(root, name) if name.startswith(PREFIX) and len(name) <= MAX_ID else None

    def step(name: str, place: int) -> str | None:
        address = run(name)
        return None if address is None else f"{address}?{urlencode({'from': place})}#step-{place}"

    def approval(name: str) -> str | None:
        return f"{root}/approvals/{quote(name, safe=':', errors='replace')}" if len(name) <= MAX_ID else None

    return Links(run=run, step=step, approval=approval)
