"""The TLS stage of a connection as a conversation calls it for every packet. Compiled, the calls cost next to
nothing, and the modules of TLS need not be loaded before the first connection with TLS."""

from __future__ import annotations

from typing import Any


class TlsStage:
    """The base class of :class:`~kdissect.tls.decrypting.Tls`, which implements its methods."""

    __slots__ = ()

    def take(
        self,
        side: int,
        packet: int,
        timestamp_ns: int,
        offset: int,
        data: bytes,
        start: int,
        length: int,
        out: list[Any],
    ) -> int:
        """Read records at the beginning of a packet's bytes; see :meth:`kdissect.tls.decrypting.Tls.take`."""
        raise NotImplementedError

    def passes_over(self) -> bool:
        """Whether it passes over encrypted records."""
        raise NotImplementedError

    def is_waiting(self) -> bool:
        """Whether records wait."""
        raise NotImplementedError

    def kept(self) -> int:
        """The memory that all kept records take: waiting ones, and incomplete ones."""
        raise NotImplementedError
