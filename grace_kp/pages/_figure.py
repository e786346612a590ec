"""Figures of a page: drawn by matplotlib, put into the page as SVG in the colours of the page, light or dark.

This is the only module that imports matplotlib.
"""

from __future__ import annotations

import importlib.util
import io
import re
import warnings
import zlib
from typing import TYPE_CHECKING, Any

from grace_kp.pages._parts import safe

if TYPE_CHECKING:
    from collections.abc import Callable

INK, SOFT, PAPER, FIRST, SECOND = "#010203", "#010204", "#010205", "#010206", "#010207"
"""Stand for colours of the page, which differ between light and dark mode: text, text in the background, the background, and two for data.
A figure must be readable without them, in grey: let line styles, markers and labels differ, too."""
_VARIABLES = {INK: "--ink", SOFT: "--soft", PAPER: "--paper", FIRST: "--first", SECOND: "--second"}
_LOOK = {
    "svg.fonttype": "none", "svg.hashsalt": "grace_kp", "font.family": "sans-serif", "font.size": 10.5,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip
# matplotlib numbers the parts of each figure from 1, so that two figures on a page share ids. Nothing refers to these.
_PART_ID = re.compile(r' id="[A-Za-z0-9.]+_\d+"')


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def figure(caption: str, draw: Callable[[Any], None], height: float, *, description: str = "") -> str:
    """Return a figure as HTML.

    Args:
        caption: what it shows; plain text.
        draw: draws on the axes of matplotlib that it is called with.
        height: in inches; the width is 6.
        description: what it shows in words, for people who cannot see it; plain text.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_LOOK), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's font lacks are drawn by the reader's font
        drawn = Figure(figsize=(6, height), layout="constrained")
        drawn.patch.set_alpha(0)
        axes = drawn.subplots()
        axes.patch.set_alpha(0)
        draw(axes)
        file = io.StringIO()
        drawn.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return f"<figure>{_of_page(file.getvalue(), caption, description)}<figcaption>{safe(caption)}</figcaption></figure>"


def _of_page(picture: str, caption: str, description: str) -> str:
    """Return an SVG for a page: with the colours of the page, a title, and no ids that occur twice."""
    picture = picture[picture.index("<svg") :]
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    picture = _PART_ID.sub("", picture)
    for colour, variable in _VARIABLES.items():
        picture = picture.replace(colour, f"var({variable})")
    number = f"{zlib.crc32(caption.encode()):08x}"
    names = f"title-{number} desc-{number}" if description else f"title-{number}"
    words = f'<title id="title-{number}">{safe(caption)}</title>'
    if description:
        words += f'<desc id="desc-{number}">{safe(description)}</desc>'
    return re.sub(
        r"<svg([^>]*)>", rf'<svg role="img" aria-labelledby="{names}"\1>' + words.replace("\\", r"\\"), picture, count=1
    )
