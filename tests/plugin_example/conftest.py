"""The test of the example leaves nothing behind where its page need not say so."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _temporary_folder(own_temporary_folder: None) -> None:
    pass
