"""Content and results in any form are text."""

from __future__ import annotations

import pytest

from grace_kp import from_openai_messages
from tests.trace.formats.chats import assistant, call, tool, user


class TestContent:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("plain", "plain"),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
            ([{"type": "output_text", "text": "a", "annotations": []}], "a"),
            ([{"type": "text", "text": {"value": "a", "annotations": []}}], "a"),
            (["a", {"type": "input_text", "text": "b"}], "a\nb"),
            ({"type": "text", "text": "one part"}, "one part"),
            ({"parts": ["a", "b"]}, "a\nb"),
            ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "see"], "[image]\nsee"),
            ([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}], "[audio]"),
            ([{"type": "audio", "transcript": "hello"}], "[audio] hello"),
            ([{"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA"}}], "[file: a.pdf]"),
            ([{"type": "refusal", "refusal": "I cannot."}], "[refusal] I cannot."),
            ([{"type": "hologram", "data": 1}], "[hologram]"),
            ([{"text": "converse"}], "converse"),
            ([{"image": {"format": "png", "source": {"bytes": "AAAA"}}}], "[image]"),
            ([{"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}], "[audio]"),
            (42, "42"),
            ({"answer": 6}, '{"answer": 6}'),
        ],
    )
    def test_content_in_any_form_is_text(self, content, text):
        """Texts as they are, parts joined, media named in brackets, anything else as JSON."""
        assert text == from_openai_messages([user("q"), assistant(content)]).steps[0].content

    @pytest.mark.parametrize("content", [None, "", [], "  ", [{"type": "text", "text": ""}], [None], {}])
    def test_empty_content_is_no_step(self, content):
        """A turn that says nothing leaves no thought behind."""
        trace = from_openai_messages([user("q"), assistant(content), assistant("a")])
        assert "a" == trace.steps[-1].content
        assert len(trace.steps) == 1 or content in ({}, [None])

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ('{"a": 1}', '{"a": 1}'),
            ({"a": 1}, '{"a": 1}'),
            ([{"a": 1}, {"b": 2}], '[{"a": 1}, {"b": 2}]'),
            ([{"type": "text", "text": "x"}, {"type": "image", "source": {"data": "AAAA"}}], "x\n[image]"),
            ([{"type": "hotel", "name": "Astoria"}], '[{"type": "hotel", "name": "Astoria"}]'),
            (["AB1", "CD2"], "AB1\nCD2"),
            (None, ""),
            (7, "7"),
            (True, "true"),
            ({"content": [{"type": "text", "text": "mcp"}], "isError": False}, "mcp"),
        ],
    )
    def test_results_in_any_form_are_text(self, content, text):
        """Data that tools return is shown as JSON, never taken for parts or calls."""
        trace = from_openai_messages([user("q"), assistant(None, call("t")), tool(content)])
        assert text == trace.steps[1].content
