"""Tables of a page."""

from __future__ import annotations

from grace_kp.pages import table


def test_figures_are_right_aligned_and_names_head_their_rows():
    """A column with a number in any row is one of figures."""
    found = table(("name", "share", "reason"), [("a", "–", "x"), ("b", "0.50 to 0.70", "y")])
    assert '<th role="columnheader" scope="col" class="n">share</th>' in found
    assert '<th role="rowheader" scope="row">b</th>' in found
    assert '<td role="cell">y</td>' in found


def test_a_column_of_words_stays_one():
    """Also if a word looks like a number."""
    assert 'class="n"' not in table(("name", "variant"), [("a", "7")], words={"variant"})


def test_cells_of_a_wide_table_carry_their_labels():
    """So that they can stand below each other on a narrow page; the column of names needs none."""
    found = table(("a", "b", "c", "d", "e"), [(1, 2, 3, 4, 5)], name=1)
    assert 'class="wide"' in found
    assert 'data-label="a"' in found
    assert 'data-label="b"' not in found


def test_values_and_captions_are_text():
    """Markup in them is shown, not obeyed."""
    found = table(("<i>",), [("<b>",)], caption="<u>")
    assert all(f"&lt;{tag}&gt;" in found for tag in "ibu")
    assert not any(f"<{tag}>" in found for tag in "ibu")
