"""Every Python block of the documentation runs, page by page, in the order in which it stands there."""

from __future__ import annotations

import re

import pytest

from tests.docs.printed import PAGES, ROOT, comparable, kept, name_of, program_of, ran

WITH_CODE = [page for page in PAGES if program_of(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_snippets_of_a_page_print_what_they_did(page, tmp_path):
    """In a fresh interpreter and an empty folder, with warnings as errors; the same lines, beside ids and measured times."""
    done = ran(page, tmp_path)
    assert (0, "") == (done.returncode, done.stderr), done.stdout + done.stderr
    assert kept(name_of(page)) == comparable(name_of(page), done.stdout)


def test_the_reference_names_everything_public():
    """No public name without a place in the reference."""
    import grace_kp

    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    missing = [name for name in grace_kp.__all__ if not re.search(rf"\b{name}\b", text) and name != "__version__"]
    assert missing == []
