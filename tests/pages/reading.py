"""Reads HTML the way a browser splits it into elements."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link", "rect", "line", "path", "circle", "use", "polyline", "polygon"}


class Elements(HTMLParser):
    """The elements of a page, with their attributes; whether each is closed where it must be; and the text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.text, self.open, self.unbalanced = [], [], "", [], []
        self.feed(text)
        self.close()
        self.unbalanced += self.open

    @property
    def tags(self):
        return {tag for tag, _ in self.elements}

    @property
    def links(self):
        return [
            element[name]
            for _, element in self.elements
            for name in ("href", "src", "action", "xlink:href")
            if name in element
        ]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.unbalanced.append(f"/{tag}")

    def handle_data(self, data):
        self.text += data


BANNED = {
    "script", "iframe", "object", "embed", "link", "base", "form", "img", "image", "foreignobject", "audio", "video", "template", "math",
}  # fmt: skip
LOCAL = ("#", "http://", "https://")


def problems(text):
    """What HTML must not hold that is shown in a notebook or mailed: scripts, resources from elsewhere, broken nesting, ids twice."""
    page = Elements(text)
    found = [f"element {tag}" for tag in sorted(page.tags & BANNED)]
    found += [
        f"{name} of {tag}"
        for tag, element in page.elements
        for name in element
        if name.startswith("on") or name == "style"
    ]
    found += [f"link to {address}" for address in page.links if not address.startswith(LOCAL)]
    found += [
        f"{name} of {tag}"
        for tag, element in page.elements
        for name in ("src", "srcset", "action", "data", "poster")
        if name in element
    ]
    found += [f"unbalanced {tag}" for tag in page.unbalanced]
    found += [f"id {name} twice" for name in sorted({name for name in page.ids if page.ids.count(name) > 1})]
    sheets = "".join(sheet.partition("</style>")[0] for sheet in text.split("<style>")[1:])
    found += [f"{word} in the style" for word in ("url(", "@import", "expression(") if word in sheets]
    targets = {address[1:] for address in page.links if address.startswith("#")}
    return found + [f"link to the missing id {name}" for name in sorted(targets - set(page.ids))]
