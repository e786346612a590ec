from __future__ import annotations

import pytest

from tests.web.figures.office import Office


@pytest.fixture
def office(tmp_path):
    made = Office(tmp_path)
    yield made
    made.close()
