"""The methods of a trace that show it to people: in a notebook, and as a file that can be mailed."""

from __future__ import annotations

from errno import EISDIR
from pathlib import Path
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import os

    from grace_kp.trace.html import HasDocument


class Shown:
    """Gives a trace its HTML."""

    __slots__ = ()

    @overload
    def to_html(self: HasDocument, path: None = None) -> str: ...
    @overload
    def to_html(self: HasDocument, path: str | os.PathLike[str]) -> Path: ...
    def to_html(self: HasDocument, path: str | os.PathLike[str] | None = None) -> str | Path:
        """Write the run as one HTML file that can be mailed, or return its text.

        The file needs no network and runs no script. It holds everything that the trace holds: figures, steps with arguments and results,
        decisions, durations and the JSON; very long texts are cut with a note. Recording has removed the secrets that it recognised. A trace
        that another program wrote is shown as it is.

        Args:
            path: the file to write, replaced as a whole if it exists; a new file is readable by its owner only (setting `file_mode`). The text
                is returned when None.

        Returns:
            The path, or the text without one.

        Raises:
            IsADirectoryError: the path is a folder.
            OSError: the file cannot be written.
        """
        from grace_kp.trace._files import write_whole
        from grace_kp.trace.html import run_page

        if path is None:
            return run_page(self)
        if Path(path).is_dir():
            raise IsADirectoryError(EISDIR, "is a folder; name a file in it, such as run.html", str(path))
        write_whole(path, run_page(self))
        return Path(path)

    def _repr_html_(self: HasDocument) -> str:
        """Return the run for a notebook: its figures, and its steps as far as the notebook stays small."""
        from grace_kp.pages import notebook
        from grace_kp.trace.html import run_excerpt

        return notebook(run_excerpt(self))
