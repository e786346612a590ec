"""Documents of a run that hold anything in any field, and what their HTML must never hold."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.pages.reading import Elements
from tests.trace.html.traces import full

ALLOWED = {
    "a", "aside", "b", "body", "button", "caption", "dd", "del", "details", "div", "dl", "dt", "form", "h1", "h2", "head", "header", "html", "input", "ins", "label",
    "li", "link", "main", "mark", "meta", "nav", "ol", "option", "p", "pre", "rect", "script", "section", "select", "span", "style", "summary", "svg",
    "table", "tbody", "td", "textarea", "th", "thead", "time", "title", "tr", "ul",
}  # fmt: skip
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!-- javascript:alert(1) \u202e\x00 "
TEXTS = st.one_of(
    st.text(max_size=12), st.sampled_from([ATTACK, "javascript:alert(1)", "//evil.example", "data:text/html,x", "</script>", "\ud800"])
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def everything():
    """The full run, with an end by an error, labels, and what is still awaited."""
    run = full()
    run["grace"] |= {
        "error": {"type": "ValueError", "message": "no"}, "awaits": ["judgement"], "dropped_steps": 2, "metadata": {"shop": "a"},
        "parent": {"trace_id": "kp:trace:0"}, "own_usage": {"input_tokens": 2704},
        "feedback": [{"correct": 0.5, "by": "ana", "at": "2026-01-02T03:04:05Z", "source": "user", "note": "late", "probability": 0.5}],
    }  # fmt: skip
    run["grace"]["confidence"] |= {
        "own": 0.5,
        "fallback": True,
        "contributions": {"steps": -0.4},
        "mismatches": ["longer"],
    }
    run["grace"]["value"] |= {"overrides": ["few_steps"]}
    run["grace"]["decisions"][0]["approval"] = {"id": "kp:approval:1", "state": "executed", "by": "ben"}
    return run


def places(value, path=()):
    """Yield the path of every field of a document."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield from places(inner, (*path, name))


PLACES = list(places(everything()))


def attacked():
    """A run with an attack in every text and every name below the second level."""

    def inner(value, depth=0):
        if isinstance(value, dict):
            return {name if depth < 4 else ATTACK + name: inner(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list):
            return [inner(item, depth + 1) for item in value]
        return ATTACK + value if isinstance(value, str) else value

    document = inner(everything())
    for step, before in zip(document["steps"], everything()["steps"], strict=True):
        step["type"] = before["type"]
    return document


@st.composite
def documents(draw):
    """A run with anything in some of its fields."""
    document = everything()
    for path in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=6)):
        holder = document
        for name in path[:-1]:
            reachable = isinstance(holder, dict) and name in holder
            reachable = reachable or (isinstance(holder, list) and isinstance(name, int) and name < len(holder))
            holder = holder[name] if reachable else None
        if isinstance(holder, dict) or (
            isinstance(holder, list) and isinstance(path[-1], int) and path[-1] < len(holder)
        ):
            holder[path[-1]] = draw(VALUES)
    return document


def check(page):
    """Fail unless a page holds only our own markup, and links only to this site and to addresses of http and https."""
    found = Elements(page)
    assert [] == found.unbalanced
    assert set() == found.tags - ALLOWED
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc"}], attributes
        if tag == "script":
            assert attributes["src"].startswith("/static/")
    for link in found.links:
        if link == "data:,":  # the empty icon
            continue
        assert link.startswith(("#", "?", "https://", "http://")) or (link[0] == "/" and link[:2] != "//"), link
    assert len(found.ids) == len(set(found.ids))
    return found
