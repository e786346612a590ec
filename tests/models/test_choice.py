"""What `auto` takes, from what is installed, on disk and configured."""

from __future__ import annotations

from grace_kp.models import choose_embedder, choose_judge
from grace_kp.settings import Settings
from tests.models.tree import tree


def has(monkeypatch, *modules):
    from grace_kp.models import _choice

    monkeypatch.setattr(_choice, "installed", lambda module: module in modules)


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
