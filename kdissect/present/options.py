"""What the user chose about how values are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdissect.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from kdissect.payload.decoder import PayloadDecoder

BYTES_FORMS = ("text", "base64", "hex")
"""How keys and values of records print."""


class Options(NamedTuple):
    """One set of choices for a whole output."""

    show_secrets: bool = False
    records: bool = False
    """Decoded record batches beside their size."""
    embedded: bool = False
    """Decoded values beside bytes that kdissect understands."""
    bytes_form: str = "text"
    limits: Limits = DEFAULTS
    shown_fields: frozenset[str] = frozenset()
    """Fields and classes of imported definitions that are shown although their name says secret, as
    ``[secrets] show`` of the configuration has them: ``MoonRequest.token``, ``MoonRequest``."""
    explain_errors: bool = False
    """Below a line or a tree of an exchange, what its errors mean and what causes them."""
    payloads: PayloadDecoder | None = None
    """Decodes keys and values of records, where that is asked for."""
    as_text: bool = False
    """Records inside messages as :class:`~kdissect.protocol.json_form.RawText`: for a writer of JSON."""


PLAIN = Options()
