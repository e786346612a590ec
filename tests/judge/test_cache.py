"""The cache of judgements: what it keeps, in memory and on disk, and what it never keeps."""

from __future__ import annotations

import json
import sqlite3

import pytest

import grace_kp as gk
from tests.judge.scripted import GOOD, Judge


def test_what_was_judged_is_remembered():
    """By model, prompt and texts; failures are not."""
    judge = Judge(OSError("once"), GOOD)
    evaluator = gk.LLMSelfEvaluator(judge)
    assert evaluator.evaluate_detailed("q", "a").fallback
    assert not evaluator.evaluate_detailed("q", "a").cached
    again = evaluator.evaluate_detailed("q", "a")
    assert (0.8, True, 0, None) == (again.score, again.cached, again.attempts, again.tokens_in)
    assert "borne out by the first source" == again.reason
    assert 2 == len(judge.prompts)
    evaluator.evaluate("q", "another")
    evaluator.evaluate("q", "a", ["a source"])
    assert 4 == len(judge.prompts)


def test_a_cache_on_disk_outlives_the_process(tmp_path):
    """It holds scores and reasons, no texts and no secrets."""
    path = tmp_path / "cache" / "judgements.db"
    reply = json.dumps({"score": 0.8, "reason": "ask ann@example.com, password=hunter2x"})
    first = gk.LLMSelfEvaluator(lambda prompt: reply, cache=gk.JudgementCache(path))
    made = first.evaluate_detailed("a question of 7f3a", "an answer of 7f3a")
    first.cache.close()
    judge = Judge(GOOD)
    judge.__name__ = "<lambda>"
    again = gk.LLMSelfEvaluator(judge, cache=gk.JudgementCache(path)).evaluate_detailed(
        "a question of 7f3a", "an answer of 7f3a"
    )
    assert (0.8, True, made.reason) == (again.score, again.cached, again.reason)
    assert [] == judge.prompts
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for text in (b"7f3a", b"hunter2x", b"ann@example.com"):
        assert text not in stored
    assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.parametrize("damage", ["garbage", "folder", "table", "value"])
def test_a_cache_that_cannot_be_used_is_an_empty_one(tmp_path, damage):
    """Judging goes on, and it says why."""
    path = tmp_path / "c.db"
    if damage == "garbage":
        path.write_bytes(b"no database at all" * 100)
    elif damage == "folder":
        path.mkdir()
    elif damage == "table":
        sqlite3.connect(path).execute("CREATE TABLE judgements (other INTEGER)").connection.commit()
    cache = gk.JudgementCache(path)
    evaluator = gk.LLMSelfEvaluator(Judge(GOOD), cache=cache)
    assert 0.8 == evaluator.evaluate("q", "a")
    if damage == "value":
        cache.close()
        file = sqlite3.connect(path)
        file.execute("UPDATE judgements SET value = ?", ('{"score": 7}',))
        file.commit()
        judge = Judge(GOOD)
        gk.LLMSelfEvaluator(judge, cache=gk.JudgementCache(path)).evaluate("q", "a")
        assert 1 == len(judge.prompts)
    else:
        assert cache.error
