"""A fragment for a notebook. One document contains many fragments, has its own style and may remove theirs.

The fragment contains the rules of the shared style that it uses, scoped to itself, and resets the host's rules for elements. It follows the
colours of JupyterLab, VS Code, Colab and Sphinx themes, and of any page that declares `color-scheme`. Without any style it stays readable.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, NamedTuple

from grace_kp.pages._parts import style

if TYPE_CHECKING:
    from collections.abc import Iterator

_DARK = "[data-jp-theme-light=false],.vscode-dark,.vscode-high-contrast,[theme=dark],[data-theme=dark]"
_LIGHT = "[data-jp-theme-light=true],.vscode-light,.vscode-high-contrast-light,[theme=light],[data-theme=light]"
_SCOPE = ".grace-kp.grace-kp.grace-kp"
"""The class three times, so that a rule for an element is stronger than the host's `.output tr:nth-child(odd)`."""
_OWN = (
    f":where({_DARK}) {_SCOPE}{{color-scheme:dark}}:where({_LIGHT}) {_SCOPE}{{color-scheme:light}}"
    # SVG keeps its attributes, which `revert` would take away.
    f"{_SCOPE}{{padding:.6rem .9rem;border-radius:6px;text-align:start;white-space:normal;max-width:64rem;"
    ":where(:not(style,svg,svg *)){all:revert}>style+*{margin-top:0!important}>:last-child{margin-bottom:0!important}"
)
MAX_BODY = 1_000_000
"""Characters of an output; larger ones make a notebook too large to open or to keep in git."""
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_RULE = re.compile(r"(@media[^{]*)\{((?:[^{}]*\{[^{}]*\})*)\s*\}|([^{}@]+)\{([^{}]*)\}")
# A printed or converted notebook never scrolls to parts that are drawn when they become visible.
_LAZY = re.compile(r";(?:content-visibility:auto|contain-intrinsic-size:[^;]*)")
_COMMA = re.compile(r",(?![^()]*\))\s*")
_NO_NAME = re.compile(r":not\([^)]*\)|\[[^\]]*\]|::?[\w-]+")
_CLASS = re.compile(r"\.([\w-]+)")
_TAG = re.compile(r"(?<![\w.-])[a-z][\w-]*")
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")
_ELEMENT = re.compile(r"<([a-z][a-z0-9]*)")
_CLASSES = re.compile(r' class="([^"]*)"')
_MARKUP = re.compile(r"<[a-z][^<>]*>")
_NAMES = re.compile(r'( (?:id|for|headers|aria-labelledby|aria-describedby|aria-controls)=")([^"]+)"')
_REFERENCE = re.compile(r'(href="#|="url\(#)')


class StyleRule(NamedTuple):
    """A rule of a style sheet: its condition such as `@media print` or empty, its selectors, and its declarations."""

    condition: str
    selectors: tuple[str, ...]
    declarations: str


def notebook(body: str) -> str:
    """Return HTML for a cell of a notebook, with its style and with unique ids.

    Args:
        body: HTML from the parts of this package; a note replaces more than 1,000,000 characters.
    """
    if len(body) > MAX_BODY:
        body = f'<p class="note">These {len(body):,} characters of HTML are too many for a notebook.</p>'
    return f'<div class="grace-kp"><style>{_style_for(body)}</style>{_with_own_ids(body)}</div>'


def rules(text: str) -> tuple[StyleRule, ...]:
    """Return the rules of a style sheet in order. The sheet has rules and `@media` blocks of rules."""
    return tuple(_read_rules(_COMMENT.sub("", text), ""))


def _read_rules(text: str, condition: str) -> Iterator[StyleRule]:
    for media, inner, selectors, declarations in _RULE.findall(text):
        if media:
            yield from _read_rules(inner, " ".join(media.split()))
        else:
            names = tuple(_COMMA.split(" ".join(selectors.split())))
            short = re.sub(r"\s*([:;])\s*", r"\1", " ".join(declarations.split())).strip("; ")
            yield StyleRule(condition, names, short)


def _scope_selector(selector: str) -> str:
    return "&" if selector in {":root", "body"} else re.sub(r"\s*([>+~])\s*", r"\1", selector)


def _needs(selector: str) -> set[str]:
    """Return the elements and classes, the latter with their dot, without which a selector matches nothing."""
    named = _NO_NAME.sub("", selector)
    tags = set(_TAG.findall(_CLASS.sub("", named))) - {"body"}
    return tags | {f".{name}" for name in _CLASS.findall(named)}


def _style_for(body: str) -> str:
    """Return the scoped style with the rules for the elements and classes of a body."""
    present = set(_ELEMENT.findall(body))
    present |= {f".{name}" for names in _CLASSES.findall(body) for name in names.split()}
    variables: dict[str, str] = {}
    parts: list[str] = []
    conditional: dict[str, str] = {}
    for condition, selectors, declarations in rules(style()):
        declarations = _LAZY.sub("", declarations)
        stated = (declaration.partition(":") for declaration in declarations.split(";"))
        defined = {name: value for name, _, value in stated if name.startswith("--")}
        if defined and _scope_selector(selectors[0]) == "&":
            variables |= defined
            continue
        used = ",".join(_scope_selector(selector) for selector in selectors if _needs(selector) <= present)
        if not used:
            continue
        # Declarations of the scope itself need no block.
        rule = f"{declarations};" if used == "&" and not condition else f"{used}{{{declarations}}}"
        if condition:
            conditional[condition] = conditional.get(condition, "") + rule
        else:
            parts.append(rule)
    parts += [f"{condition}{{{inner}}}" for condition, inner in conditional.items()]
    text = "".join(parts)
    needed = dict.fromkeys(name for name in _VARIABLE.findall(text) if name in variables)
    return f"{_OWN}{''.join(f'{name}:{variables[name]};' for name in needed)}{text}}}"


def _with_own_ids(body: str) -> str:
    if ' id="' not in body:
        return body
    own = f"g{secrets.token_hex(5)}-"

    def prefix_ids(match: re.Match[str]) -> str:
        markup = _NAMES.sub(lambda names: f'{names[1]}{" ".join(own + name for name in names[2].split())}"', match[0])
        return _REFERENCE.sub(rf"\g<1>{own}", markup)

    return _MARKUP.sub(prefix_ids, body)
