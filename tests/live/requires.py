"""Marks of tests that need more of the machine than it may permit."""

from __future__ import annotations

import pytest

from tests.live.machine import may_capture, may_make_namespaces, nobody

requires_raw_sockets = pytest.mark.skipif(not may_capture(), reason="packet sockets are not permitted here")
requires_namespaces = pytest.mark.skipif(
    not may_make_namespaces(), reason="network namespaces cannot be made here"
)
requires_nobody = pytest.mark.skipif(not nobody(), reason="nobody can be become here")
