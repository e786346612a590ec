"""Outputs of notebooks within a foreign page, and a mailed run, in a real browser: neither changes the other, both themes are followed, axe-core finds nothing."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.calibrate import assess
from grace_kp.trace.html import run_page
from tests.approvals.shops import Shop, asked
from tests.browser.conftest import AXE
from tests.trace.html.traces import document, full

HOST = """<!doctype html><html lang="en"><head><title>host</title><style>
body { font: 20px serif; color: %(ink)s; background: %(paper)s; }
.out table { table-layout: fixed; border: 1px solid red; margin: 0 auto; font-size: 12px; }
.out td, .out th { text-align: right; padding: 3em; border: none; vertical-align: middle; white-space: nowrap; }
.out tbody tr:nth-child(odd) { background: gold; }
.out svg { max-width: 10px; height: auto; } .out dt { font-weight: bold; } .out a { color: red; } .out li { list-style: square; } .out pre { background: pink; }
.out details { border: 3px solid; } .out summary { color: lime; } .out p { margin: 3em; } button { background: gold; border-radius: 0; }
</style></head><body %(attributes)s><h1>Host</h1><p>Text <a href="#x">link</a> <button>button</button> <code>code</code> <input></p>
<div class="out"><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table><ul><li>item</li></ul><pre>pre</pre></div>
<details><summary>summary</summary></details>%(outputs)s</body></html>"""
LOOKS = "*".join(
    ("color", "background-color", "font-size", "font-family", "font-weight", "text-align", "padding-left", "border-top-width", "margin-left", "display",
     "white-space", "list-style-type", "table-layout", "vertical-align", "border-radius", "color-scheme", "line-height", "box-sizing")
)  # fmt: skip
STYLES = """([selector, names]) => [...document.querySelectorAll(selector)].map(
    element => names.split('*').map(name => name + ': ' + getComputedStyle(element).getPropertyValue(name)).join('; '))"""


@pytest.fixture(scope="module")
def outputs():
    trace = gk.ReasoningTrace.model_validate({**full(), "id": "kp:trace:01234567-89ab-4def-8123-456789abcdef"})
    shown = [
        trace,
        trace,
        trace.confidence,
        gk.ConfidenceCalculator().calculate(gk.ConfidenceFactors()),
        assess([0.2, 0.9, 0.6], [False, True, True]),
        Shop().requests.file(asked(score=0.4)),
    ]
    return [each._repr_html_() for each in shown]


@pytest.fixture
def open_tab(browser):
    """Opens a page in a context of its own."""
    contexts = []

    def new_page(**options):
        contexts.append(browser.new_context(**options))
        return contexts[-1].new_page()

    yield new_page
    for context in contexts:
        context.close()


def violations(page):
    page.add_script_tag(path=AXE)
    return page.evaluate("async () => (await axe.run()).violations.map(each => each.id + ': ' + each.nodes[0].html)")


def host(outputs, *, attributes="", ink="black", paper="white"):
    cells = "".join(f'<div class="out">{output}</div>' for output in outputs)
    return HOST % {"attributes": attributes, "ink": ink, "paper": paper, "outputs": cells}


def test_outputs_change_nothing_of_the_page_around_them(open_tab, outputs):
    tab = open_tab()
    own = [":not(.grace-kp, .grace-kp *, .out:has(.grace-kp), head *)", LOOKS]
    tab.set_content(host([]))
    before = tab.evaluate(STYLES, own)
    tab.set_content(host(outputs))
    assert len(before) > 20
    assert before == tab.evaluate(STYLES, own)


def test_the_page_around_changes_nothing_of_the_outputs(open_tab, outputs):
    tab = open_tab()
    own = [".grace-kp, .grace-kp :not(style)", LOOKS]
    tab.set_content("<!doctype html>" + "".join(f"<div>{output}</div>" for output in outputs))
    alone = tab.evaluate(STYLES, own)
    tab.set_content(host(outputs))
    assert len(alone) > 200
    assert alone == tab.evaluate(STYLES, own)


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize(
    ("attributes", "paper"),
    [
        ("", "rgb(255, 255, 255)"),
        ('data-jp-theme-light="true"', "rgb(255, 255, 255)"),
        ('data-jp-theme-light="false"', "rgb(16, 19, 24)"),
        ('class="vscode-dark"', "rgb(16, 19, 24)"),
        ('theme="dark"', "rgb(16, 19, 24)"),
        ('style="color-scheme: dark"', "rgb(16, 19, 24)"),
    ],
)
def test_outputs_follow_the_theme_of_the_notebook(open_tab, outputs, system, attributes, paper):
    """Whatever the operating system prefers; a page that states no theme is a light one."""
    page = open_tab(color_scheme=system)
    page.set_content(host(outputs, attributes=attributes))
    found = page.evaluate(STYLES, [".grace-kp", "background-color"])
    assert {f"background-color: {paper}"} == set(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("run", ["full", "long"])
def test_a_mailed_run_is_accessible_and_fits_a_phone(open_tab, scheme, run, tmp_path):
    steps = [{"type": "thought", "content": "x" * 300} for _ in range(200)]
    path = tmp_path / "run.html"
    path.write_text(run_page(full() if run == "full" else document(steps)), encoding="utf-8")
    page = open_tab(color_scheme=scheme, viewport={"width": 360, "height": 800}, bypass_csp=True)
    page.goto(path.as_uri())
    assert 360 == page.evaluate("document.documentElement.scrollWidth")
    assert [] == violations(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_outputs_are_accessible(open_tab, outputs, scheme):
    page = open_tab(color_scheme=scheme)
    page.set_content(
        f'<!doctype html><html lang="en" style="color-scheme: {scheme}"><title>n</title><main><h1>n</h1>{"".join(outputs)}</main></html>'
    )
    assert [] == violations(page)
