"""Where the key of the Gemini service is looked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


def key_in(environ: Mapping[str, str] | None = None) -> str | None:
    """The API key in the environment: GEMINI_API_KEY, else GOOGLE_API_KEY."""
    place = os.environ if environ is None else environ
    return next((place[name] for name in KEYS if place.get(name)), None)
