"""Tests of the adapters. The kit that they share states its expectations in a module that is no test, so pytest explains them there, too."""

import pytest

pytest.register_assert_rewrite("tests.integrations.scenario")
