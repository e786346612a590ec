"""Redaction: secrets and identifiers out of strings and JSON values, before anything is written or leaves the machine.

Secrets are removed at every level, identifiers at `aggregated` and `federated`. A new format of a key goes into `_vendors`, a pattern
around a secret or an identifier, a command or a sentence into `_patterns`, a name of secrets into `_names`, and a table or a group into
`_places`. `_scan` chooses the rules that can match a string.
"""

from grace_kp.trace.redaction._scan import UNSCANNED, Redaction, redact, redact_text, redacted_error
from grace_kp.trace.redaction._value import Redactor, have_plain_names, redact_value, redacted_arguments, texts_in

__all__ = [
    "UNSCANNED", "Redaction", "Redactor", "have_plain_names", "redact", "redact_text", "redact_value", "redacted_arguments", "redacted_error",
    "texts_in",
]  # fmt: skip
