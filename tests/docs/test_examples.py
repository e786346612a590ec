"""Every example runs offline as it stands, without a warning and without a word on standard error."""

from __future__ import annotations

import importlib.util

import pytest

from tests.docs.printed import EXAMPLES, ROOT, comparable, kept, name_of, ran


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_did(example, tmp_path):
    """The same lines, beside ids and measured times."""
    if example.stem.startswith("lang") and importlib.util.find_spec("langchain") is None:
        pytest.skip("needs the extra langchain")
    done = ran(example, tmp_path)
    assert (0, "") == (done.returncode, done.stderr), done.stdout + done.stderr
    assert done.stdout
    assert kept(name_of(example)) == comparable(name_of(example), done.stdout)


def test_the_list_of_examples_names_each():
    """In the README of the folder."""
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [] == [path.name for path in EXAMPLES if f"`{path.name}`" not in listed]
