"""Lines of Python that empty pages show: complete programs that fill them. The server's path is not shown, because viewers may not know it."""

from __future__ import annotations


def recording_lines(url: str | None) -> str:
    """Return lines that record a run.

    Args:
        url: the store of this server; None for the default store, which needs no name.
    """
    return f"""{_runtime(url)}

@grace.agent
def answer(question): return "It takes 5 days."

answer("When do I get my money back?")"""


def asking_lines(url: str | None) -> str:
    """Return lines that ask for an approval, and wait for the decision.

    Args:
        url: the store of this server; None for the default store, which needs no name.
    """
    return f"""{_runtime(url, "reviewer=gk.InboxReviewer()")}

@grace.gate(floor="confirm")
def refund(invoice: str, euros: int): return f"paid back {{euros}} euros for {{invoice}}"

print(refund("A-17", 40))"""


def _runtime(url: str | None, *options: str) -> str:
    store = () if url is None else ('store="sqlite:///app.db"',)
    comment = "" if url is None else "  # the store of this server"
    return f"import grace_kp as gk\n\ngrace = gk.Grace({', '.join([*store, *options])}){comment}"
