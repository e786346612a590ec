"""Tests of `_gatekeeper`, to be extended with it."""
