"""The cache of judgements: what it keeps, in memory and on disk, and what it never keeps."""

from __future__ import annotations

import gc
import json
import sqlite3
import warnings

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


def entry(score):
    return {"score": score, "reason": "r", "model": None}


def test_a_cache_that_is_dropped_closes_its_file(tmp_path):
    """Python from 3.13 on warns about a connection that is left to be collected."""
    gc.collect()  # what earlier tests left
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        gk.JudgementCache(tmp_path / "judgements.db").get("none")
        gc.collect()
    assert [] == heard


def test_the_oldest_judgements_are_dropped(tmp_path):
    """In memory the one that was used longest ago, in the file the one that was written first."""
    cache = gk.JudgementCache(max_entries=2)
    for cache_key in ("a", "b"):
        cache.put(cache_key, entry(0.1))
    cache.get("a")
    cache.put("c", entry(0.3))
    assert [True, False, True] == [cache.get(cache_key) is not None for cache_key in ("a", "b", "c")]
    first = gk.JudgementCache(tmp_path / "c.db", max_entries=2)
    for cache_key in ("a", "b", "c"):
        first.put(cache_key, entry(0.1))
    first.close()
    again = gk.JudgementCache(tmp_path / "c.db", max_entries=2)
    assert [False, True, True] == [again.get(cache_key) is not None for cache_key in ("a", "b", "c")]
    again.close()


@pytest.mark.parametrize("on_disk", [True, False])
def test_clearing_forgets_everything(tmp_path, on_disk):
    """Also in the file, whose pages no longer hold what was deleted; the cache can be used again."""
    path = tmp_path / "c.db" if on_disk else None
    cache = gk.JudgementCache(path)
    cache.put("a", {"score": 0.5, "reason": "a reason of 7f3a", "model": None})
    cache.clear()
    assert cache.get("a") is None
    if on_disk:
        assert b"7f3a" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    cache.put("b", entry(0.7))
    assert 0.7 == cache.get("b")["score"]
    cache.close()
    cache.close()
