"""A fragment for a notebook: scoped style, own ids, bounded size."""

from __future__ import annotations

import re

import pytest

from grace_kp.pages import badge, confidence_html, fold, notebook, page, style, table
from tests.pages.reading import Elements

BODY = '<ol class="steps"><li class="step" id="step-3"><a class="number" href="#step-3">3</a></li></ol>'


def css(fragment):
    return re.search(r"<style>(.*?)</style>", fragment, re.DOTALL)[1]


def top_level(sheet):
    """The selectors of the outermost rules."""
    selectors, depth, start = [], 0, 0
    for place, character in enumerate(sheet):
        if character == "{":
            if not depth:
                selectors.append(sheet[start:place])
            depth += 1
        elif character == "}":
            depth -= 1
            start = place + 1
    assert 0 == depth
    return selectors


@pytest.mark.parametrize("body", [BODY, confidence_html(0.5, breakdown={"a": 0.5}), table(("a",) * 5, [("b",) * 5])])
def test_no_rule_reaches_beyond_the_fragment(body):
    assert all(re.search(r"(\.grace-kp){3}$", selector) for selector in top_level(css(notebook(body))))


def test_only_rules_that_the_body_uses_are_written():
    found = css(notebook(badge("escalate")))
    assert ".badge.escalate{" in found
    for unused in ("table", "textarea", "button", ".plot", ".step", ".badge.good", "--mono"):
        assert unused not in found
    assert ",td{" in css(notebook(table(("a", "b"), [("b", "c")])))


def test_every_rule_of_the_style_can_be_used():
    sheet = style()
    names = sorted(set(re.findall(r"\.([a-z][\w-]*)", re.sub(r"/\*.*?\*/|\d\.\d", "", sheet))))
    tags = ("table", "tr", "td", "th", "thead", "tbody", "caption", "a", "p", "li", "ul", "ol", "h1", "h2", "h3", "code", "pre", "kbd", "figure",
            "figcaption", "summary", "details", "del", "ins", "button", "input", "select", "textarea", "label", "fieldset", "legend", "progress",
            "section", "svg", "dl", "dt", "dd", "div", "text", "time", "span", "abbr", "main", "nav", "form", "header", "footer", "img", "hr")  # fmt: skip
    every = f'<div class="{" ".join(names)}"></div>' + "".join(f"<{tag}></{tag}>" for tag in tags)
    found = css(notebook(every))
    wanted = re.findall(r"\{([^{}]+)\}", re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL))
    short = [re.sub(r"\s*([:;])\s*", r"\1", " ".join(text.split())).strip("; ") for text in wanted]
    assert [] == [
        text for text in short if "--ink" not in text and "content-visibility:auto" not in text and text not in found
    ]
    assert "content-visibility:auto" not in found


def test_colours_are_those_of_the_style():
    for body in (badge("escalate"), confidence_html(0.5, breakdown={"a": 0.5}), fold("x", code=True), BODY):
        found = css(notebook(body))
        used = set(re.findall(r"var\((--[\w-]+)\)", found))
        assert used <= set(re.findall(r"(--[\w-]+):", found))


def test_two_outputs_share_no_id():
    first, second = Elements(notebook(BODY)), Elements(notebook(BODY))
    assert 1 == len(first.ids) == len(second.ids)
    assert first.ids != second.ids
    assert [f"#{first.ids[0]}"] == first.links


def test_ids_in_texts_are_left_alone():
    assert "&quot;#x&quot; id=&quot;y&quot;" in notebook(BODY + fold('"#x" id="y" href="#z"'))


def test_without_ids_the_output_is_the_same_each_time():
    """So that running a notebook again changes nothing in its file."""
    assert notebook(badge("silent")) == notebook(badge("silent"))


def test_references_of_pictures_follow_their_ids():
    body = '<svg><defs><path id="m1"/></defs><use xlink:href="#m1"/><g clip-path="url(#m1)"></g></svg>'
    found = notebook(body)
    own = Elements(found).ids[0]
    assert f'xlink:href="#{own}"' in found
    assert f'clip-path="url(#{own})"' in found


def test_a_note_replaces_what_is_too_large():
    found = notebook("x" * 1_000_001)
    assert "1,000,001 characters of HTML are too many" in found
    assert len(found) < 3_000


def test_the_one_style_of_pages_stays_as_it_is():
    assert style() in page("a", BODY)
