"""Tests of `_site`, to be extended with it."""
