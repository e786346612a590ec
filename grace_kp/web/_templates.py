"""The templates: everything they show is escaped, and characters that cannot be seen are made visible."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape


def templates() -> Environment:
    """Return the Jinja environment of the pages."""
    return Environment(
        loader=PackageLoader("grace_kp.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
