"""YAML and JSON files that people write: content, line of each value, and one clear line for every fault."""

from __future__ import annotations

import json
import sys

import pytest

from grace_kp.errors import GraceError, MissingExtra
from grace_kp.trace import SourceFields, SourceFile, problem_at

pytest.importorskip("yaml", reason="needs the extra eval")


class Item(SourceFields):
    name: str
    size: int = 1


class Items(SourceFields):
    items: list[Item]


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file of the given name."""

    def call(text, name="f.yaml", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return SourceFile.read(path, "files of a test", GraceError, **options)

    return call


def message(call):
    with pytest.raises(GraceError) as caught:
        call()
    return str(caught.value)


class TestRead:
    @pytest.mark.parametrize("name", ["f.yaml", "f.json"])
    def test_yaml_and_json_give_the_same_content(self, read, name):
        """The end of the name decides how a file is read."""
        content = {"items": [{"name": "a", "size": 2}], "more": None}
        assert read(json.dumps(content), name).content == content

    def test_names_are_kept_as_written_on_request(self, read):
        """An id `010` is 8 for YAML 1.1 and `010` for people."""
        text = "010: 010\n7: 7\n1:30: 1:30\n"
        assert read(text).content == {8: 8, 7: 7, 90: 90}
        assert read(text, names_as_written=True).content == {"010": "010", "7": 7, "1:30": "1:30"}

    def test_a_merged_key_may_be_replaced(self, read):
        """Merge keys are no duplicates."""
        text = "- &a {name: x, size: 1}\n- {<<: *a, name: y}\n"
        assert read(text, names_as_written=True).content == [{"name": "x", "size": 1}, {"name": "y", "size": 1}]

    @pytest.mark.parametrize(
        ("text", "name", "problem"),
        [
            (b"a: 1\nb: \xff", "f.yaml", ":2: not UTF-8: invalid start byte"),
            ("a: 1\nb: [", "f.yaml", ":2: not valid YAML: "),
            ("a: 1\nb: \x07", "f.yaml", ":2: not valid YAML: the character #x07 is not allowed"),
            ("a: 1\nb: 2020-13-45", "f.yaml", ":2: not valid YAML: month must be in 1..12"),
            ("a: 1\nb: {c: 1, c: 2}", "f.yaml", ":2: not valid YAML: duplicate key 'c'"),
            ("a: 1\nb: !!python/object:os.system x", "f.yaml", ":2: not valid YAML: could not determine a constructor"),
            ("\n" + "[" * 3_000, "f.yaml", ":2: nested too deeply"),
            ('{"a": 1,\n', "f.json", ":2: not valid JSON: "),
            ('{"a": 1,\n"a": 2}', "f.json", ": duplicate key 'a'"),
            ("[" * 100_000, "f.json", ": nested too deeply"),
        ],
    )
    def test_a_file_that_cannot_be_parsed(self, read, tmp_path, text, name, problem):
        """File, line and problem stand in one line."""
        found = message(lambda: read(text, name))
        assert found.startswith(f"{tmp_path / name}{problem}")
        assert len(found.splitlines()) == 1

    def test_yaml_needs_its_package_and_json_does_not(self, read, monkeypatch):
        """The message names the feature and the pip command."""
        monkeypatch.setitem(sys.modules, "yaml", None)
        assert read("{}", "f.json").content == {}
        with pytest.raises(MissingExtra, match=r"files of a test needs .* pip install 'grace-kp\[eval\]'"):
            read("{}")


class TestParse:
    def test_content_becomes_the_model(self, read):
        """Defaults fill what is not there."""
        assert read("items: [{name: a}]").parse(Items) == Items(items=[Item(name="a", size=1)])

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", ":1: must be an object with the fields items, not None"),
            ("items: 3", ":1: items: must be a list, not 3"),
            ("items:\n- name: a\n- 3", ":3: items[1]: must be an object with the fields name, size, not 3"),
            ("items:\n- name: a\n  size: x", ":3: items[0].size: "),
            ("items:\n- size: 3\n  name: a\n- size: 1\n", ":4: items[1].name: is missing"),
            ("items:\n- name: a\n  weight: 3", ":3: items[0]: unknown field 'weight'; known are name, size"),
            ("items:\n- &a\n  name: 1\n- <<: *a\n  name: 2", ":3: items[0].name: must be a string, not 1"),
        ],
    )
    def test_content_that_does_not_fit(self, read, tmp_path, text, problem):
        """The message names the line, the field, the value found and what is allowed."""
        assert message(lambda: read(text).parse(Items)).startswith(f"{tmp_path / 'f.yaml'}{problem}")

    def test_json_has_no_lines(self, read, tmp_path):
        """The path of the field is the place."""
        found = message(lambda: read('{"items": [{}]}', "f.json").parse(Items))
        assert found == f"{tmp_path / 'f.json'}: items[0].name: is missing"

    def test_a_validator_names_a_value_below_its_object(self, read, tmp_path):
        """The line is that of the value, the place that of the object."""

        class Pair(SourceFields):
            first: int
            second: int

            def model_post_init(self, context, /):
                if self.first > self.second:
                    raise problem_at("second is smaller than first", "second")

        found = message(lambda: read("first: 2\nsecond: 1").parse(Pair))
        assert found == f"{tmp_path / 'f.yaml'}:2: second is smaller than first"


class TestError:
    @pytest.mark.parametrize(
        ("location", "detail", "place"),
        [
            ((), (), ":1: "),
            (("a",), (), ":1: a: "),
            (("a", 1), (), ":3: a[1]: "),
            (("a", 1), ("b",), ":4: a[1]: "),
            (("a", 1), ("nowhere", 3), ":3: a[1]: "),
            (("a", 7), (), ":1: a[7]: "),
        ],
    )
    def test_the_line_is_that_of_the_closest_value(self, read, tmp_path, location, detail, place):
        """A detail refines the line and is not part of the place."""
        source = read("a:\n- 1\n- c: 1\n  b: 2\n")
        assert str(source.error("wrong\nhere", location, detail)) == f"{tmp_path / 'f.yaml'}{place}wrong here"
