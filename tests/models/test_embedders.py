"""The real model through both libraries, and what embedders do when they cannot."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import grace_kp as gk
from grace_kp.models import _hub, choose_embedder
from grace_kp.settings import Settings

TEXTS = [
    "The agent looked up the fare from Lisbon to Rome.",
    "東京の天気は晴れです。",
    "返金の手続きを始めます。",
    "",
    "word " * 600,
    "emoji 🎉 and a lone \udc00 surrogate".replace("\udc00", "?"),
    "def f(x): return x + 1",
]


@pytest.fixture(scope="module")
def both(minilm, onnx_folder):
    return gk.OnnxEmbedder(onnx_folder), gk.SentenceTransformerEmbedder(minilm, "cpu")


def test_both_give_the_same_vectors(both):
    """To 1e-5, for short, long, empty and Japanese texts, alone and in a batch."""
    onnx, torch = both
    ours, theirs = onnx.embed(TEXTS), torch.embed(TEXTS)
    assert (len(TEXTS), 384) == ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype == np.float32
    assert np.abs(ours - theirs).max() < 1e-5
    fresh = type(onnx)(onnx._model)
    for number, text in enumerate(TEXTS):
        assert np.abs(fresh.embed([text])[0] - ours[number]).max() < 1e-5


def test_vectors_have_length_one(both):
    """So that similarity is a product."""
    assert np.linalg.norm(both[0].embed(TEXTS), axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


def test_a_large_batch_keeps_its_order(both):
    """Texts are sorted by length on the way, and come back where they belong."""
    texts = [f"{'long ' * (number % 17)}text number {number}" for number in range(200)]
    whole = gk.OnnxEmbedder(both[0]._model, remember=0).embed(texts)
    for number in (0, 16, 99, 199):
        assert np.abs(whole[number] - both[0].embed([texts[number]])[0]).max() < 1e-5


def test_similar_texts_are_less_novel_than_different_ones(both):
    """In English, and in Japanese as far as the model goes; repeats go towards 0."""

    def novelty(first, then):
        scorer = gk.ValueScorer(embedder=both[0])
        for text in (first, then):
            score = scorer.score_parts(step_types=["thought"], tool_names=[], success=True, confidence=0.5, text=text)
        assert score.novelty_fallback is None
        return score.novelty

    refund = "refund the customer 20 euros"
    assert novelty(refund, refund) == pytest.approx(0.0, abs=1e-5)
    assert novelty(refund, "give the client his 20 EUR back") < novelty(refund, "the weather in Rome is nice")
    ja = "顧客に二十ユーロを返金する"
    assert novelty(ja, ja) == pytest.approx(0.0, abs=1e-5)
    assert novelty(ja, "お客様に二十ユーロを返金します") < novelty(ja, "Version 3 of the library is out")


def test_after_the_ttl_novelty_recovers(both):
    """What was forgotten is new again, against what is still there."""
    now = [0.0]
    cache = gk.VectorCache(ttl_seconds=10, clock=lambda: now[0])
    scorer = gk.ValueScorer(embedder=both[0], cache=cache)

    def novelty(text):
        return scorer.score_parts(
            step_types=["thought"], tool_names=[], success=True, confidence=0.5, text=text
        ).novelty

    novelty("refund the customer")
    assert novelty("refund the customer") == pytest.approx(0.0, abs=1e-5)
    now[0] = 8.0
    novelty("a poem about the sea")
    now[0] = 15.0
    assert novelty("refund the customer") > 0.5


def test_the_agreement_of_real_texts(both):
    """Sources that say the same agree more than sources that do not."""
    agreement = gk.SourceAgreementCalculator(both[0])
    same = agreement.calculate(["Paris is the capital of France.", "The capital of France is Paris."])
    other = agreement.calculate(["Paris is the capital of France.", "Bread is made of flour."])
    assert 0.9 < same <= 1
    assert other < 0.4


def test_it_is_loaded_once_by_many_threads(onnx_folder, monkeypatch):
    """And gives all of them the same."""
    from grace_kp.models import _onnx

    made = []

    class Counted(_onnx._Loaded):
        def __init__(self, folder):
            made.append(folder)
            super().__init__(folder)

    monkeypatch.setattr(_onnx, "_Loaded", Counted)
    embedder = gk.OnnxEmbedder(onnx_folder, remember=0)
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda number: embedder.embed([TEXTS[number % 3]])[0], range(24)))
    assert 1 == len(made)
    for number, row in enumerate(rows):
        assert np.abs(row - rows[number % 3]).max() < 1e-6


def test_a_forked_child_loads_its_own(onnx_folder):
    """Threads of a model do not survive a fork."""
    code = textwrap.dedent("""
        import os, sys, signal
        import grace_kp as gk
        embedder = gk.OnnxEmbedder(sys.argv[1])
        first = embedder.embed(["hello"])
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            second = embedder.embed(["hello", "again"])
            os._exit(0 if abs(first[0] - second[0]).max() < 1e-6 else 3)
        assert os.waitpid(child, 0)[1] == 0
    """)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(onnx_folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (0, "") == (ran.returncode, ran.stderr)


def test_runs_are_novel_in_the_order_in_which_they_ended(onnx_folder):
    """On the background worker; the agent's thread embeds nothing."""
    threads = set()
    model = gk.OnnxEmbedder(onnx_folder, remember=0)

    class Watched:
        dimensions = 384

        def embed(self, texts):
            threads.add(threading.current_thread().name)
            return model.embed(texts)

    grace = gk.Grace(store="memory:", embedder=Watched(), evaluator=None, reviewer=None)

    @grace.agent
    def agent(question):
        return "done"

    for question in ("refund the customer", "a poem about the sea", "refund the customer", "refund the customer"):
        agent(question)
    assert grace.flush(60)
    novelties = [trace.grace["value"] for trace in reversed(grace.store.query())]
    assert "nothing to compare with yet" == novelties[0]["novelty_fallback"]
    assert novelties[1]["novelty"] > 0.3
    assert novelties[2]["novelty"] == pytest.approx(0.0, abs=1e-4)
    assert novelties[3]["novelty"] == pytest.approx(0.0, abs=1e-4)
    grace.close()


# Without the model.


def tree(root, revision=_hub.REVISION, content=b"not the model"):
    folder = root / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / revision
    for name in ("onnx/model.onnx", "tokenizer.json"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def has(monkeypatch, *modules):
    from grace_kp.models import _choice

    monkeypatch.setattr(_choice, "installed", lambda module: module in modules)


ONNX = ("onnxruntime", "tokenizers", "huggingface_hub")


def test_auto_prefers_onnx_then_sentence_transformers(tmp_path, monkeypatch):
    """By what is installed and on disk, and it says why."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    has(monkeypatch)
    choice = choose_embedder(Settings.load())
    assert choice.model is None
    assert "pip install 'grace-kp[onnx]'" in choice.why
    has(monkeypatch, *ONNX, "sentence_transformers")
    choice = choose_embedder(Settings.load())
    assert choice.model is None
    assert "doctor --fetch-model" in choice.why
    st = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / "abc"
    st.mkdir(parents=True)
    (st / "modules.json").write_text("[]")
    (st / "model.safetensors").write_bytes(b"")
    assert "SentenceTransformerEmbedder" == choose_embedder(Settings.load()).name
    tree(tmp_path)
    assert "OnnxEmbedder" == choose_embedder(Settings.load()).name
    has(monkeypatch, "sentence_transformers")
    assert "SentenceTransformerEmbedder" == choose_embedder(Settings.load()).name


def test_auto_takes_a_folder_that_is_named(tmp_path, monkeypatch):
    """`embedding_model` wins; a name that leads nowhere says so."""
    has(monkeypatch, *ONNX)
    (tmp_path / "model.onnx").write_bytes(b"")
    assert "OnnxEmbedder" == choose_embedder(Settings.load(embedding_model=str(tmp_path))).name
    choice = choose_embedder(Settings.load(embedding_model="some/model"))
    assert choice.model is None
    assert "some/model is not on disk" in choice.why
    assert choose_embedder(Settings.load(embedding_model=str(tmp_path / "no"))).model is None


def test_a_model_is_fetched_only_when_that_was_said(tmp_path, monkeypatch):
    """Without it novelty stays 0.5, and the trace says why."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(gk.EmbedderError, match="--fetch-model"):
        gk.OnnxEmbedder().embed(["text"])
    grace = gk.Grace(store="memory:", embedder=gk.OnnxEmbedder(), evaluator=None, reviewer=None)
    with grace.run("one") as run:
        pass
    assert 0.5 == run.trace.grace["value"]["novelty"]
    assert "not on disk" in run.trace.grace["value"]["novelty_fallback"]
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_is_not_the_pinned_one_is_not_loaded(tmp_path, monkeypatch):
    """By its hash, before anything reads it."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    tree(tmp_path)
    with pytest.raises(gk.EmbedderError, match="not the pinned file"):
        gk.OnnxEmbedder().embed(["text"])


def test_a_folder_that_lacks_something_says_what(tmp_path):
    """Or is no folder, or holds something else."""
    pytest.importorskip("onnxruntime")
    with pytest.raises(gk.EmbedderError, match="no folder"):
        gk.OnnxEmbedder(tmp_path / "no").embed(["text"])
    with pytest.raises(gk.EmbedderError, match=r"lacks model\.onnx"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])
    (tmp_path / "model.onnx").write_bytes(b"garbage")
    with pytest.raises(gk.EmbedderError, match=r"lacks tokenizer\.json"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(gk.EmbedderError, match="cannot be loaded"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])


def test_a_missing_extra_names_the_command(monkeypatch, tmp_path):
    """One ImportError of ours."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(gk.MissingExtra, match=r"grace-kp\[onnx\]"):
        gk.OnnxEmbedder(tmp_path).embed(["text"])
    with pytest.raises(gk.MissingExtra, match=r"grace-kp\[embeddings\]"):
        gk.SentenceTransformerEmbedder(tmp_path).embed(["text"])


FETCH = """
import sys
import grace_kp.models._hub as hub
hub.ONNX_FILES = tuple(hub.ModelFile(name, sha, int(size)) for name, sha, size in (item.split("=") for item in sys.argv[1:]))
print(hub.fetch_onnx(lambda what: print("fetching", what)))
"""


@pytest.mark.parametrize("right", [True, False])
def test_fetching_from_a_hub(tmp_path, right):
    """Over the hub's own client, from a server on this machine: pinned by revision, checked by hash, not fetched twice."""
    pytest.importorskip("huggingface_hub")
    files = {"onnx/model.onnx": b"the model" * 1_000, "tokenizer.json": b"{}"}
    asked = []

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65_536

        def answer(self, body):
            name = self.path.partition(f"/resolve/{_hub.REVISION}/")[2].partition("?")[0]
            asked.append((self.command, self.path))
            content = files.get(name)
            self.send_response(404 if content is None else 200)
            self.send_header("ETag", f'"{hashlib.sha256(content or b"").hexdigest()}"')
            self.send_header("X-Repo-Commit", _hub.REVISION)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if body:
                self.wfile.write(content or b"")

        def do_HEAD(self):
            self.answer(False)

        def do_GET(self):
            self.answer(True)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        wanted = [
            f"{name}={hashlib.sha256(content if right else b'other').hexdigest()}={len(content)}"
            for name, content in files.items()
        ]
        environ = {
            **os.environ,
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HUB_CACHE": str(tmp_path),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
        }
        environ.pop("HF_HUB_OFFLINE", None)
        ran = subprocess.run(
            [sys.executable, "-c", FETCH, *wanted],
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if right:
            assert 0 == ran.returncode, ran.stderr
            assert "fetching onnx/model.onnx" in ran.stdout
            assert all(_hub.REVISION in path for _, path in asked)
            assert files["onnx/model.onnx"] == (_tree(tmp_path) / "onnx" / "model.onnx").read_bytes()
            gets = [path for command, path in asked if command == "GET" and "/resolve/" in path]
            again = subprocess.run(
                [sys.executable, "-c", FETCH, *wanted],
                env=environ,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert 0 == again.returncode, again.stderr
            assert gets == [path for command, path in asked if command == "GET" and "/resolve/" in path]
        else:
            assert "not the pinned file" in ran.stderr
    finally:
        server.shutdown()
        server.server_close()


def _tree(root):
    return root / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / _hub.REVISION


def test_a_plain_callable_is_an_embedder_with_a_memory():
    """Each text is embedded once; the length is learned."""
    asked = []

    def function(text):
        asked.append(text)
        return [len(text), 1.0]

    embedder = gk.CallableEmbedder(function)
    with pytest.raises(gk.EmbedderError, match="after the first text"):
        _ = embedder.dimensions
    rows = embedder.embed(["a", "bb", "a"])
    assert [[1, 1], [2, 1], [1, 1]] == rows.tolist()
    assert np.float32 == rows.dtype
    assert 2 == embedder.dimensions
    embedder.embed(["bb", "ccc"])
    assert ["a", "bb", "ccc"] == asked
    assert (0, 2) == embedder.embed([]).shape


def test_the_memory_is_bounded():
    """The text used last stays."""
    asked = []

    def function(text):
        asked.append(text)
        return [1.0]

    embedder = gk.CallableEmbedder(function, remember=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        embedder.embed([text])
    assert ["a", "b", "c", "b"] == asked
    with pytest.raises(ValueError, match="remember"):
        gk.CallableEmbedder(function, remember=-1)


@pytest.mark.parametrize("wrong", ["one text", [3], [None]])
def test_embed_takes_a_list_of_texts(wrong):
    """One text instead of a list would be embedded letter by letter."""
    with pytest.raises(TypeError):
        gk.CallableEmbedder(lambda text: [1.0]).embed(wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: gk.OnnxEmbedder(threads=0),
        lambda: gk.SentenceTransformerEmbedder(batch_size=0),
        lambda: gk.GeminiEmbedder(dimensions=0),
        lambda: gk.GeminiEmbedder(timeout=0),
        lambda: gk.GeminiJudge(attempts=0),
        lambda: gk.GeminiJudge(timeout=-1),
        lambda: gk.GeminiJudge(""),
    ],
)
def test_arguments_without_a_sense_are_refused(make):
    """When the object is made, not when the first text comes."""
    with pytest.raises(ValueError, match="must be"):
        make()


def test_the_model_is_looked_for_where_the_hub_keeps_it(tmp_path):
    """By the same variables that its client reads."""
    assert tmp_path / "a" == _hub.cache_folder({"HF_HUB_CACHE": str(tmp_path / "a")})
    assert tmp_path / "b" / "hub" == _hub.cache_folder({"HF_HOME": str(tmp_path / "b")})
    assert tmp_path / "c" / "huggingface" / "hub" == _hub.cache_folder({"XDG_CACHE_HOME": str(tmp_path / "c")})
    shutil.rmtree(tmp_path)
