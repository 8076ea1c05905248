from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.broker import TestBroker


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker of our own that runs."""
    with TestBroker() as found:
        yield found
