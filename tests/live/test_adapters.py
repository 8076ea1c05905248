"""Names of adapters, as people and Npcap have them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from kdissect.live import libpcap
from kdissect.live.adapters import Adapter, adapter, adapters
from kdissect.live.errors import LiveError, NoInterfaceError, NotPermittedError

ETHERNET, LOOPBACK = r"\Device\NPF_{6B29FC40-CA47}", r"\Device\NPF_Loopback"
INTEL = "Intel(R) Ethernet Connection"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two adapters, of which Windows knows one."""
    windows = ModuleType("scapy.arch.windows")
    known: list[dict[str, Any]] = [
        {"guid": "{6b29fc40-ca47}", "name": "Ethernet", "ips": ["fe80::1", "10.0.0.7"]},
        {"guid": "{0}", "name": "Bluetooth", "ips": []},
    ]
    vars(windows).update(get_windows_if_list=lambda: known)
    monkeypatch.setitem(sys.modules, "scapy.arch.windows", windows)
    monkeypatch.setattr(libpcap, "is_available", lambda: True)
    found = [(ETHERNET, INTEL), (LOOPBACK, "Adapter for loopback traffic capture")]
    monkeypatch.setattr(libpcap, "devices", lambda: found)


def test_an_adapter_has_the_name_that_windows_gives_it() -> None:
    assert adapters() == [
        Adapter("Ethernet", ETHERNET, "10.0.0.7", INTEL),
        Adapter("Loopback", LOOPBACK, None, "Adapter for loopback traffic capture"),
    ]


@pytest.mark.parametrize("name", ["Ethernet", "ethernet", ETHERNET, "{6B29FC40-CA47}", INTEL])
def test_it_is_found_by_any_of_its_names(name: str) -> None:
    assert adapter(name).device == ETHERNET


def test_a_wrong_name_is_told_with_those_there_are() -> None:
    with pytest.raises(NoInterfaceError, match="no interface eth0; there are Ethernet, Loopback"):
        adapter("eth0")


def test_names_of_npcap_do_where_windows_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scapy.arch.windows", None)
    assert [each.name for each in adapters()] == ["{6B29FC40-CA47}", "Loopback"]


def test_it_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libpcap, "devices", list)
    with pytest.raises(NotPermittedError, match="Npcap shows no interface"):
        adapter("Ethernet")
    monkeypatch.setattr(libpcap, "is_available", lambda: False)
    assert adapters() == []
    with pytest.raises(LiveError, match="capturing needs Npcap here: "):
        adapter("Ethernet")
