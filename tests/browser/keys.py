"""Ways to use a page: by mouse, with the keyboard alone, and on a phone with and without script; in both colour schemes."""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 300
"""More presses of Tab than any page of the tests needs."""


@dataclass(frozen=True)
class Way:
    """How a person uses a page."""

    name: str
    scheme: str = "light"
    width: int = 1400
    script: bool = True

    def __str__(self):
        return self.name

    def open(self, visit, path):
        return Hand(visit(path, scheme=self.scheme, width=self.width, script=self.script), self)


WAYS = [
    Way("mouse"),
    Way("keyboard", scheme="dark"),
    Way("phone", scheme="dark", width=360),
    Way("phone without script", width=360, script=False),
]


class Hand:
    """Uses the controls of a page in one way."""

    def __init__(self, page, way):
        self.page, self.way = page, way

    def press(self, target):
        """Use a button, a link or a summary."""
        if self.way.name == "keyboard":
            press_on(self.page, target)
        elif self.way.width < 500:
            target.tap()
        else:
            target.click()

    def follow(self, target):
        """Use a button or a link that leads to another page, and return when that is loaded."""
        with arrival(self.page):
            self.press(target)

    def tick(self, target):
        """Use a check box."""
        if self.way.name == "keyboard":
            press_on(self.page, target, "Space")
        else:
            self.press(target)

    def pick(self, target):
        """Use a radio button. Tab leads to the first of its group, and arrows from there to the others."""
        if self.way.name == "keyboard":
            press_on(self.page, self.page.get_by_role("radio").first, "Space")
            while not target.is_checked():
                self.page.keyboard.press("ArrowDown")
        else:
            self.press(target)

    def write(self, target, text):
        """Replace what stands in a field."""
        if self.way.name == "keyboard":
            press_on(self.page, target, None)
            self.page.keyboard.press("Control+a")
        else:
            self.press(target)
            target.select_text()
        self.page.keyboard.type(text)

    def choose(self, target, label):
        """Choose an option of a select field. A keyboard chooses it by its first letters."""
        if self.way.name == "keyboard":
            press_on(self.page, target, None)
            self.page.keyboard.type(label)
        else:
            target.select_option(label=label)


def arrival(page):
    """Return a context manager that waits at its end until the next page is loaded, with its styles and scripts.

    Without it, the next line of a test may still act on the old page, or on a page that is only partly loaded.
    """
    return page.expect_navigation()


def follow(target):
    """Click on a button or a link that leads to another page, and return when that is loaded."""
    with arrival(target.page):
        target.click()


def press_on(page, target, key="Enter"):
    """Move the focus to a control with Tab, and press a key there; None only moves the focus.

    Where the focus arrives it must be seen: the control has an outline.
    """
    for _ in range(STEPS):
        if target.evaluate("each => each === document.activeElement || each.parentElement === document.activeElement"):
            break
        page.keyboard.press("Tab")
    else:
        raise AssertionError(f"Tab does not lead to {target}")
    style = page.locator(":focus").evaluate("each => getComputedStyle(each).outlineStyle")
    assert style != "none", f"nothing shows that the focus is on {target}"
    if key is not None:
        page.keyboard.press(key)
