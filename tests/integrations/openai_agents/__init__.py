"""Tests of the adapter for the OpenAI Agents SDK."""
