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
