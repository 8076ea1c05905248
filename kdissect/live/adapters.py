r"""Network adapters of Windows: the names that users know ─► the names by which Npcap opens them.

Npcap calls an adapter ``\Device\NPF_{6B29…}``; Windows calls it ``Ethernet``. Scapy asks Windows for both.
"""

from __future__ import annotations

from typing import NamedTuple

from kdissect.live import libpcap
from kdissect.live.errors import LiveError, NoInterfaceError, NotPermittedError

_PREFIX = r"\Device\NPF_"


class Adapter(NamedTuple):
    """An adapter that can be captured from."""

    name: str
    device: str
    """Npcap's name for it."""
    address: str | None
    """IPv4."""
    description: str

    def is_called(self, name: str) -> bool:
        """Whether ``name`` is one of the adapter's names."""
        own = (self.name, self.device, self.device.removeprefix(_PREFIX), self.description)
        return name.casefold() in (each.casefold() for each in own)


class _KnownAdapter(NamedTuple):
    name: str
    address: str | None


def adapters() -> list[Adapter]:
    """The adapters that Npcap shows to this user; empty without Npcap."""
    if not libpcap.is_available():
        return []
    known = _known()
    found: list[Adapter] = []
    for device, description in libpcap.devices():
        identity = device.removeprefix(_PREFIX)
        name, address = known.get(identity.casefold(), _KnownAdapter(identity, None))
        found.append(Adapter(name, device, address, description))
    return found


def adapter(name: str) -> Adapter:
    """The adapter with this name.

    :raises LiveError: there is no such adapter, or capturing is not permitted.
    """
    found = adapters()
    if not libpcap.is_available():
        raise LiveError(f"capturing needs Npcap here: {libpcap.install_hint()}")
    if not found:
        raise NotPermittedError("Npcap shows no interface")
    for each in found:
        if each.is_called(name):
            return each
    there = ", ".join(each.name for each in found)
    raise NoInterfaceError(f"there is no interface {name or repr(name)}; there are {there}")


def _known() -> dict[str, _KnownAdapter]:
    """The adapters that Windows lists, by their identity in lower case."""
    try:
        from scapy.arch.windows import get_windows_if_list

        return {
            each["guid"].casefold(): _KnownAdapter(
                each["name"], next((address for address in each["ips"] if "." in address), None)
            )
            for each in get_windows_if_list()
        }
    except (ImportError, OSError):  # adapters then keep Npcap's names
        return {}
