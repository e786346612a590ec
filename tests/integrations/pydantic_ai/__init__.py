"""Tests of the adapter for Pydantic AI."""
