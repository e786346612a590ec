from __future__ import annotations

import pytest

from tests.web.runs.house import House


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    yield made
    made.close()
