"""The filters of the list."""

from __future__ import annotations

from grace_kp.web.runs._conditions import chips, fields, stated


class Names:
    def names(self, kind, limit=200):
        return {"agent": ["support", "writer"], "tag": ["web", "vip"]}.get(kind, [])


def test_conditions_are_those_that_say_something():
    """Empty and repeated ones, and other parameters, are left out."""
    pairs = [("agent", "a"), ("status", ""), ("tags", "x"), ("tags", "y"), ("tags", "x"), ("before", "7")]
    assert [("agent", "a"), ("tags", "x"), ("tags", "y")] == stated(pairs)


def test_a_chip_takes_one_condition_away():
    """The others stay, also another of the same name."""
    found = chips([("tags", "x"), ("tags", "y&z"), ("scorer_passed", "false")])
    assert [("tag", "x"), ("tag", "y&z"), ("scorer", "not passed")] == [(chip.label, chip.value) for chip in found]
    assert "tags=x&scorer_passed=false" == found[1].without


def test_fields_offer_what_occurs():
    """A value that occurs no more stays selected; a field without names is a text."""
    by_name = {
        field.name: field for field in fields(Names(), [("agent", "old"), ("tags", "web")], {"since": "must be a time"})
    }
    assert (["old", "support", "writer"], "old") == (
        [value for value, _ in by_name["agent"].options],
        by_name["agent"].value,
    )
    assert (("web",), "") == (by_name["tags"].kept, by_name["tags"].value)
    assert () == by_name["domain"].options
    assert "must be a time" == by_name["since"].problem
    assert ["text", "agent", "status", "level"] == [field.name for field in by_name.values() if field.first]
