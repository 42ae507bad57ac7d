"""The budget of the driver: small sets of rows are divided as large ones are."""

import pytest


@pytest.fixture(autouse=True)
def nothing_gathered(monkeypatch):
    monkeypatch.setattr("sparsvm.partitioned.prepare.GATHERED_BYTES", 0)
