"""What `auto` takes, from what is installed, on disk and configured."""

from __future__ import annotations

from grace_kp.models import choose_embedder
from grace_kp.settings import Settings
from tests.models.tree import tree


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
