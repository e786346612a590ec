"""Stand-ins for the libraries of embeddings, and a folder as the hub's client lays it out."""

from __future__ import annotations

import sys
import types

import numpy as np

from grace_kp.models import _hub

DIMENSIONS = 4


def vector(text):
    codes = [ord(letter) for letter in text]
    return [1.0, float(len(text)), float(sum(codes) % 101), float(sum(codes[::2]) % 37)]


class Model:
    """What a library loads; it keeps the texts that went through it, and fails where `error` is set."""

    def __init__(self):
        self.loads = 0
        self.texts = []
        self.options = {}
        self.load_error = self.error = None

    def load(self, **options):
        self.loads += 1
        self.options = options
        if self.load_error is not None:
            raise self.load_error

    def rows(self, texts):
        if self.error is not None:
            raise self.error
        self.texts += texts
        return np.array([vector(text) for text in texts], dtype=np.float32)


def onnx(monkeypatch):
    """Install onnxruntime and tokenizers with a model of three-dimensional output; a token is a whole text."""
    model = Model()

    class Session:
        def __init__(self, path, options, providers):
            model.load(path=path, threads=options.intra_op_num_threads)

        def get_inputs(self):
            return [types.SimpleNamespace(name=name) for name in ("input_ids", "attention_mask")]

        def run(self, names, inputs):
            texts = ["".join(chr(code) for code in row if code) for row in inputs["input_ids"]]
            return [np.repeat(model.rows(texts)[:, None, :], inputs["input_ids"].shape[1], axis=1)]

    class Tokenizer:
        @staticmethod
        def from_file(path):
            return Tokenizer()

        def enable_truncation(self, length):
            self.length = length

        def enable_padding(self):
            pass

        def encode_batch(self, texts):
            width = max(1, *(len(text[: self.length]) for text in texts))
            return [
                types.SimpleNamespace(
                    ids=[ord(letter) for letter in text[: self.length]] + [0] * (width - len(text[: self.length])),
                    attention_mask=[1] * max(1, len(text[: self.length]))
                    + [0] * (width - max(1, len(text[: self.length]))),
                )
                for text in texts
            ]

    runtime = types.SimpleNamespace(SessionOptions=types.SimpleNamespace, InferenceSession=Session)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setitem(sys.modules, "tokenizers", types.SimpleNamespace(Tokenizer=Tokenizer))
    return model


def onnx_folder(path):
    """A folder with the two files that an ONNX model needs; what is in them is up to the stand-in."""
    path.mkdir(exist_ok=True)
    (path / "model.onnx").write_bytes(b"")
    (path / "tokenizer.json").write_text("{}")
    return path


class ProgressBars:
    def __init__(self):
        self.enabled, self.changes = True, []

    def is_progress_bar_enabled(self):
        return self.enabled

    def disable_progress_bar(self):
        self.enabled = False
        self.changes.append("off")

    def enable_progress_bar(self):
        self.enabled = True
        self.changes.append("on")


def sentence_transformers(monkeypatch):
    """Install sentence-transformers, and transformers with its progress bars as `model.bars`."""
    model = Model()
    model.bars = ProgressBars()

    class SentenceTransformer:
        def __init__(self, name, device, local_files_only):
            model.load(name=name, device=device, local_files_only=local_files_only, bars=model.bars.enabled)

        def get_embedding_dimension(self):
            return DIMENSIONS

        def encode(self, texts, *, batch_size, normalize_embeddings, **options):
            model.batch_size = batch_size
            rows = model.rows(texts)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True) if normalize_embeddings else rows

    monkeypatch.setitem(
        sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=SentenceTransformer)
    )
    monkeypatch.setitem(sys.modules, "transformers", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "transformers.utils", types.SimpleNamespace(logging=model.bars))
    return model


def tree(root, revision=_hub.REVISION, content=b"not the model"):
    folder = root / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / revision
    for name in ("onnx/model.onnx", "tokenizer.json"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
