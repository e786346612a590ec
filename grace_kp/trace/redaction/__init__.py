"""Redaction: secrets and identifiers out of texts and JSON values, before anything is written or leaves the machine.

Secrets are removed at every level, identifiers at `aggregated` and `federated`. The tables of rules are `_vendors`, `_patterns`,
`_commands`, `_named_rule` and `_identifiers`; `_scan` chooses the rules that can match a text.
"""

from grace_kp.trace.redaction._redactor import Redactor, texts_in
from grace_kp.trace.redaction._text import UNSCANNED, Redaction, redact, redact_text, redacted_error
from grace_kp.trace.redaction._value import have_plain_names, redact_value, redacted_arguments

__all__ = [
    "UNSCANNED", "Redaction", "Redactor", "have_plain_names", "redact", "redact_text", "redact_value", "redacted_arguments", "redacted_error",
    "texts_in",
]  # fmt: skip
