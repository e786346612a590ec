"""JSON of documents and journal rows: by orjson if it is installed, else by pydantic's encoder, which writes the same bytes.

The module is loaded with the first document, because it loads one of the two.
"""

from __future__ import annotations

import json

from pydantic_core import to_json as pydantic_json

try:
    from orjson import OPT_PASSTHROUGH_DATACLASS, OPT_PASSTHROUGH_DATETIME, dumps

    _PLAIN = OPT_PASSTHROUGH_DATACLASS | OPT_PASSTHROUGH_DATETIME
except ImportError:
    dumps = None  # type: ignore[assignment]


def encode(value: object) -> bytes:
    """Return UTF-8 JSON. Half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    if dumps is not None:
        try:
            return dumps(value, None, _PLAIN)
        except TypeError:  # keys that are not strings, integers beyond 64 bits, half a surrogate pair
            pass
    try:
        return pydantic_json(value)
    except ValueError:  # pydantic's and those of UTF-8
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", errors="replace")
