"""The hooks for Strands Agents pass the conformance kit."""

import pytest

pytest.importorskip("strands")

from tests.integrations.scenario import Conformance
from tests.integrations.strands.driver import StrandsDriver


class TestGraceHooks(Conformance):
    driver = StrandsDriver()
