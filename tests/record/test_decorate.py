"""Functions, methods and blocks become recorded ones; whatever cannot be recorded is refused with a reason."""

from __future__ import annotations

import pytest


def test_methods_static_and_class_methods(grace):
    """The instance is no input, and the kinds of methods stay what they are."""

    class Desk:
        @grace.tool
        def plain(self, x):
            return x

        @grace.tool
        @staticmethod
        def static(x):
            return x

        @grace.tool
        @classmethod
        def of_class(cls, x):
            return (cls.__name__, x)

        @staticmethod
        @grace.tool
        def inside(x):
            return x

    desk = Desk()
    with grace.collect() as traces, grace.run("work"):
        assert desk.plain(1) == 1
        assert Desk.static(2) == 2
        assert desk.of_class(3) == ("Desk", 3)
        assert desk.inside(4) == 4
        assert Desk.plain(desk, 5) == 5
    assert [s.input for s in traces[0].steps if s.type == "tool_call"] == [{"x": n} for n in (1, 2, 3, 4, 5)]


def test_what_cannot_be_decorated_is_refused_with_a_reason(grace):
    """A class and a value are refused at once."""
    with pytest.raises(TypeError, match="class"):
        grace.agent(type("A", (), {}))
    with pytest.raises(TypeError, match="function"):
        grace.tool(3)
    with pytest.raises(ValueError, match="kind"):
        grace.tool(kind="serach")
    with pytest.raises(ValueError, match="objective"):
        grace.run("")
