"""Tests of `_templates`, to be extended with it."""
