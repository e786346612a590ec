"""The plugin for Google ADK passes the conformance kit."""

import pytest

pytest.importorskip("google.adk")

from tests.integrations.adk.driver import AdkDriver
from tests.integrations.scenario import Conformance


class TestGracePlugin(Conformance):
    driver = AdkDriver()
