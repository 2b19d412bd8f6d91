"""Engines that take no time, for all tests of the server."""

import pytest
from rest_world import FastEngines, rest_world

from pagemill.runtime import engines


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    made = FastEngines()
    monkeypatch.setattr(engines, "load", made.load)
    monkeypatch.setattr(engines, "names", lambda group: [made.name])


@pytest.fixture
async def world(tmp_path):
    async with rest_world(tmp_path / "data") as made:
        yield made
