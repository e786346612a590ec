"""Imports what programs with approvals need, so that forks begin at once."""

from __future__ import annotations

import importlib
import os
import pkgutil

from fault_suite import forks

from grace_kp.trace import redact_value

PACKAGES = (
    "cryptography.hazmat.primitives.ciphers.aead",
    "cryptography.hazmat.primitives.kdf.hkdf",
    "encodings.utf_16_be",
    "jsonschema",
    "keyring.backends.null",
    "httpx",
    "pydantic.type_adapter",
    "tenacity",
    "tomllib",
    "rfc8785",
)


def warm() -> None:
    """Import the rooms and packages, without opening a store. No keyring is asked."""
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    package = importlib.import_module("grace_kp.approvals")
    for module in pkgutil.iter_modules(package.__path__, "grace_kp.approvals."):
        importlib.import_module(module.name)
    for name in PACKAGES:
        importlib.import_module(name)
    for identifiers in (False, True):
        redact_value({"text": "builds the scan for secrets once"}, identifiers=identifiers)
    forks.warm()
