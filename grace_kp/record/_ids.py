"""Ids of traces: random UUIDs, cheaper than `uuid4` and safe across forks; a test may have them fixed."""

from __future__ import annotations

import os


def new_trace_id() -> str:
    """`kp:trace:` and a random version 4 UUID."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"kp:trace:{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
