"""The cache of embeddings behind novelty."""

import math
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from grace_kp.value import VectorCache
from tests.exhaustive import examples


class Clock:
    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


def cosine(a, b):
    """The cosine similarity in exact-enough arithmetic, free of overflow."""
    a, b = np.asarray(a, dtype=np.longdouble), np.asarray(b, dtype=np.longdouble)
    if not a.any() or not b.any():
        return 0.0
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return float((a @ b) / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("base", [0.0, 1_000.0, 123_456.789])
@pytest.mark.parametrize("unit", [1e-3, 1.0])
def test_golden_sequences(vectors, base, unit):
    """Every recorded sequence of operations gives its recorded answers, in seconds as in whole units of a clock."""
    for number, sequence in enumerate(vectors("novelty_sequences")):
        clock, elapsed = Clock(base), 0
        ttl = sequence["ttl_ms"]
        cache = VectorCache(
            sequence["max_elements"],
            sequence["dimensions"],
            ttl_seconds=None if ttl is None else ttl * unit,
            clock=clock,
        )
        for step, op in enumerate(sequence["ops"]):
            match op["op"]:
                case "add":
                    cache.add(op["vector"])
                case "query":
                    found = cache.max_cosine_similarity(op["vector"])
                    assert op["expected"] == pytest.approx(found, abs=1e-6), (number, step)
                case "size":
                    assert (op["expected"],) * 2 == (cache.size, len(cache)), (number, step)
                case "advance_ms":
                    elapsed += op["ms"]
                    clock.now = base + elapsed * unit
                case "clear":
                    cache.clear()


def test_an_empty_cache_is_true():
    assert VectorCache(dimensions=1)


def test_zero_vectors_are_similar_to_nothing():
    """A zero vector has similarity 0, stored or asked for, and beats a negative one."""
    cache = VectorCache(dimensions=2)
    cache.add([0, 0])
    assert 0.0 == cache.max_cosine_similarity([1, 0])
    cache.add([-1, 0])
    assert 0.0 == cache.max_cosine_similarity([1, 0])
    assert 0.0 == cache.max_cosine_similarity([0, 0])


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-40, 1.0, 1e40, 1e200, 1.7e308])
def test_magnitude_does_not_matter(scale):
    """Numbers near either end of what a float holds neither overflow nor vanish, nor warn."""
    cache = VectorCache(dimensions=3)
    with np.errstate(all="raise"):
        cache.add([scale, scale, 0.0])
        assert 1.0 == pytest.approx(cache.max_cosine_similarity([scale, scale, 0.0]), abs=1e-6)
        assert math.sqrt(0.5) == pytest.approx(cache.max_cosine_similarity([1.0, 0.0, 0.0]), abs=1e-6)


finite = st.floats(allow_nan=False, allow_infinity=False)
vectors_of_5 = hnp.arrays(np.float64, 5, elements=finite)


@given(st.lists(vectors_of_5, min_size=1, max_size=12), vectors_of_5)
def test_agrees_with_exact_arithmetic(seen, query):
    """Whatever finite numbers come, the answer is the largest cosine similarity to 1e-6, and lies in -1 to 1."""
    cache = VectorCache(max_elements=12, dimensions=5)
    for vector in seen:
        cache.add(vector)
    similarity = cache.max_cosine_similarity(query)
    assert max(cosine(vector, query) for vector in seen) == pytest.approx(similarity, abs=1e-6)
    assert -1.0 <= similarity <= 1.0


@examples(60)
@given(st.integers(1, 5), st.lists(st.integers(0, 30), max_size=20))
def test_the_oldest_goes(capacity, picks):
    """Over capacity the cache behaves as a list of the last vectors added."""
    cache = VectorCache(capacity, dimensions=31)
    for pick in picks:
        cache.add(np.eye(31)[pick])
    assert min(capacity, len(picks)) == len(cache)
    for probe in range(31):
        expected = 1.0 if probe in picks[-capacity:] else 0.0
        assert expected == cache.max_cosine_similarity(np.eye(31)[probe])


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=30), st.integers(1, 40))
def test_expiry_is_exact(moves, ttl):
    """At every moment exactly the entries with added_at > now - ttl count, whatever the clock did in between."""
    clock = Clock()
    cache = VectorCache(100, dimensions=1, ttl_seconds=ttl, clock=clock)
    added = []
    for wait, adds in moves:
        clock.now += wait
        if adds:
            cache.add([1.0])
            added.append(clock.now)
        live = sum(at > clock.now - ttl for at in added)
        assert live == cache.size
        assert (1.0 if live else 0.0) == cache.max_cosine_similarity([1.0])


def test_compare_and_add_in_one_go():
    """The comparison is with what was there before; nothing there is told apart from a similarity of 0."""
    cache = VectorCache(dimensions=2)
    assert cache.compare_and_add([1, 0]) is None
    assert 0.0 == cache.compare_and_add([0, 1])
    assert 1.0 == cache.compare_and_add([0, 1])
    assert 3 == cache.size


def test_no_two_threads_are_both_first():
    cache = VectorCache(dimensions=16)
    answers, gate = [], threading.Barrier(16)

    def bring():
        gate.wait()
        answers.append(cache.compare_and_add(np.ones(16)))

    threads = [threading.Thread(target=bring) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == answers.count(None)
    assert [pytest.approx(1.0)] * 15 == [answer for answer in answers if answer is not None]
    assert 16 == len(cache)


@pytest.mark.parametrize("given", [[1.0, 2.0], np.ones(5), (), np.float32([1])])
def test_wrong_length_names_both_lengths(given):
    cache = VectorCache(dimensions=3)
    for method in (cache.add, cache.max_cosine_similarity, cache.compare_and_add):
        with pytest.raises(ValueError, match=rf"3.*{len(given)}"):
            method(given)
    assert 0 == len(cache)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_components_are_refused(bad):
    cache = VectorCache(dimensions=3)
    cache.add([1, 0, 0])
    for method in (cache.add, cache.max_cosine_similarity, cache.compare_and_add):
        with pytest.raises(ValueError, match="finite"):
            method([1.0, bad, 0.0])
    assert 1 == len(cache)
    assert 1.0 == cache.max_cosine_similarity([1, 0, 0])


@pytest.mark.parametrize(
    "bad", [["1", "2", "3"], [None, 1, 2], 3.0, [[1, 2, 3]], [1j, 0, 0], [True, False, True], b"abc", [10**400, 1, 1]]
)
def test_what_is_no_vector_is_refused(bad):
    with pytest.raises(ValueError, match="vector"):
        VectorCache(dimensions=3).add(bad)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"max_elements": 0}, "max_elements"),
        ({"max_elements": 1.5}, "max_elements"),
        ({"max_elements": True}, "max_elements"),
        ({"dimensions": -1}, "dimensions"),
        ({"dimensions": None}, "dimensions"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": -1}, "ttl_seconds"),
        ({"ttl_seconds": math.nan}, "ttl_seconds"),
        ({"ttl_seconds": math.inf}, "ttl_seconds"),
        ({"ttl_seconds": "5"}, "ttl_seconds"),
    ],
)
def test_bad_settings_are_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        VectorCache(**arguments)


def test_importing_the_room_loads_neither_numpy_nor_pydantic():
    code = (
        "import sys, grace_kp.value as v;"
        "d={'metadata':{'success':True,'task_domain':'x'},'steps':[{'type':'thought'}],'outcome':{'confidence':1}};"
        "v.evaluate_value(d);"
        "sys.exit(bool({'numpy','pydantic','asyncio','rich'} & set(sys.modules)))"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
