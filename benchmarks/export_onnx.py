"""Exports a sentence-transformers folder to ONNX, as the public repository of all-MiniLM-L6-v2 carries it.

    python benchmarks/export_onnx.py FOLDER OUT

Needs torch and transformers. OUT becomes a folder that OnnxEmbedder takes: model.onnx and tokenizer.json.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path


def export(folder: Path, out: Path) -> Path:
    """Write `out`/model.onnx and `out`/tokenizer.json; the folder `out`."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    class Plain(torch.nn.Module):
        """The model with its inputs by position."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.model(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).last_hidden_state

    out.mkdir(parents=True, exist_ok=True)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones((2, 8), dtype=torch.long) for _ in names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Plain(),
            example,
            str(out / "model.onnx"),
            input_names=names,
            output_names=["last_hidden_state"],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in [*names, "last_hidden_state"]},
            opset_version=17,
            dynamo=False,
        )
    shutil.copy(folder / "tokenizer.json", out)
    return out


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(export(Path(sys.argv[1]), Path(sys.argv[2])))
