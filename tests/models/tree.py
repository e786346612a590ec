"""A folder as the hub's client lays it out, with files that are no models."""

from __future__ import annotations

from grace_kp.models import _hub


def tree(root, revision=_hub.REVISION, content=b"not the model"):
    folder = root / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / revision
    for name in ("onnx/model.onnx", "tokenizer.json"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
