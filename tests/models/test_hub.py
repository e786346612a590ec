"""Files of the embedding model on disk and on the hub, and the choice of `auto` among models."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import grace_kp as gk
from grace_kp.models import _hub, choose_embedder, choose_judge
from grace_kp.settings import Settings
from tests.models import libraries
from tests.models.libraries import tree

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

        def fetch():
            command = [sys.executable, "-c", FETCH, *wanted]
            return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)

        ran = fetch()
        if right:
            assert 0 == ran.returncode, ran.stderr
            assert "fetching onnx/model.onnx" in ran.stdout
            assert all(_hub.REVISION in path for _, path in asked)
            assert files["onnx/model.onnx"] == next(tmp_path.rglob("model.onnx")).read_bytes()
            gets = [path for command, path in asked if command == "GET" and "/resolve/" in path]
            again = fetch()
            assert 0 == again.returncode, again.stderr
            assert gets == [path for command, path in asked if command == "GET" and "/resolve/" in path]
        else:
            assert "not the pinned file" in ran.stderr
    finally:
        server.shutdown()
        server.server_close()


def test_a_model_is_fetched_only_when_that_was_said(tmp_path, monkeypatch):
    """Without it novelty stays 0.5, and the trace says why."""
    libraries.onnx(monkeypatch)
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
    libraries.onnx(monkeypatch)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    tree(tmp_path)
    with pytest.raises(gk.EmbedderError, match="not the pinned file"):
        gk.OnnxEmbedder().embed(["text"])


def test_the_model_is_looked_for_where_the_hub_keeps_it(tmp_path, monkeypatch):
    for name in ("HF_HUB_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in (("XDG_CACHE_HOME", "huggingface/hub"), ("HF_HOME", "hub"), ("HF_HUB_CACHE", "")):
        monkeypatch.setenv(name, str(tmp_path / name))
        assert tmp_path / name / folder / "models--owner--name" / "snapshots" == _hub.snapshots("owner/name")


@pytest.fixture
def model(monkeypatch):
    return libraries.onnx(monkeypatch)


@pytest.fixture
def clock(monkeypatch):
    """The seconds that the module reads."""
    now = [1_000.0]
    monkeypatch.setattr(_hub.time, "monotonic", lambda: now[0])
    return now


def test_threads_share_one_model(model, tmp_path):
    """Also those that ask for it at the same moment."""
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    barrier = threading.Barrier(8)

    def load(_):
        barrier.wait(30)
        embedder.load()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(load, range(8)))
    assert 1 == model.loads


def test_a_failure_is_remembered_for_a_minute(model, clock, tmp_path):
    model.load_error = OSError("broken")
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    for _ in range(3):
        with pytest.raises(gk.EmbedderError, match="broken"):
            embedder.embed(["a"])
    assert 1 == model.loads
    model.load_error = None
    clock[0] += 59.9
    with pytest.raises(gk.EmbedderError, match="broken"):
        embedder.embed(["a"])
    clock[0] += 0.1
    assert (1, libraries.DIMENSIONS) == embedder.embed(["a"]).shape
    assert 2 == model.loads


def test_another_process_loads_its_own(model, monkeypatch, tmp_path):
    embedder = gk.OnnxEmbedder(libraries.onnx_folder(tmp_path / "m"))
    assert 384 == embedder.dimensions
    embedder.load()
    assert libraries.DIMENSIONS == embedder.dimensions
    monkeypatch.setattr(_hub.os, "getpid", lambda: -1)
    assert 384 == embedder.dimensions
    embedder.load()
    assert 2 == model.loads


def has(monkeypatch, *modules):
    from grace_kp.models import _choice

    monkeypatch.setattr(_choice, "is_installed", lambda module: module in modules)


ONNX = ("onnxruntime", "tokenizers", "huggingface_hub")


def test_auto_prefers_onnx_then_sentence_transformers(tmp_path, monkeypatch):
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
    has(monkeypatch, *ONNX)
    (tmp_path / "model.onnx").write_bytes(b"")
    assert "OnnxEmbedder" == choose_embedder(Settings.load(embedding_model=str(tmp_path))).name
    choice = choose_embedder(Settings.load(embedding_model="some/model"))
    assert choice.model is None
    assert "some/model is not on disk" in choice.why
    assert choose_embedder(Settings.load(embedding_model=str(tmp_path / "no"))).model is None


def test_auto_takes_gemini_only_with_its_extra_and_a_key(monkeypatch):
    has(monkeypatch)
    assert "pip install 'grace-kp[gemini]'" in choose_judge(Settings.load()).why
    has(monkeypatch, "google.genai")
    choice = choose_judge(Settings.load())
    assert (None, "no API key is set: GEMINI_API_KEY or GOOGLE_API_KEY") == (choice.model, choice.why)
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    choice = choose_judge(Settings.load(gemini_model="gemini-y", judge_timeout=7))
    assert ("GeminiJudge gemini-y", "gemini-y", 7.0) == (choice.name, choice.model.model, choice.model.timeout)


def test_auto_may_fetch_where_that_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    settings = Settings.load(fetch_models=True)
    for modules, name in (
        (ONNX, "OnnxEmbedder"),
        (("sentence_transformers",), "SentenceTransformerEmbedder"),
        (("onnxruntime", "tokenizers", "sentence_transformers"), "SentenceTransformerEmbedder"),
    ):
        has(monkeypatch, *modules)
        choice = choose_embedder(settings)
        assert name == choice.name
        assert "will be fetched" in choice.why
    has(monkeypatch, "onnxruntime", "tokenizers")
    assert "huggingface-hub is not installed" in choose_embedder(settings).why


def test_a_named_model_needs_a_library_that_loads_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    has(monkeypatch, "sentence_transformers")
    for settings in (
        Settings.load(embedding_model=str(tmp_path)),
        Settings.load(embedding_model="some/model", fetch_models=True),
    ):
        assert "SentenceTransformerEmbedder" == choose_embedder(settings).name
    assert "is not on disk" in choose_embedder(Settings.load(embedding_model="some/model")).why
    has(monkeypatch, *ONNX)
    assert "no model that an installed extra can load" in choose_embedder(Settings.load(embedding_model="plain")).why
    assert choose_embedder(Settings.load(embedding_model=str(tmp_path))).model is None
