"""The user's choices of how values are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdissect.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from kdissect.payload.decoder import PayloadDecoder

BYTES_FORMS = ("text", "base64", "hex")
"""The forms of keys and values of records."""


class Options(NamedTuple):
    """The choices for a whole output."""

    show_secrets: bool = False
    records: bool = False
    """Whether to show decoded record batches beside their size."""
    embedded: bool = False
    """Whether to show decoded values beside bytes that kdissect understands."""
    bytes_form: str = "text"
    limits: Limits = DEFAULTS
    shown_fields: frozenset[str] = frozenset()
    """Fields and classes of imported definitions that are shown although their names suggest a secret, by
    ``[secrets] show`` of the configuration: ``MoonRequest.token``, ``MoonRequest``."""
    explain_errors: bool = False
    """Whether to print the meaning and the causes of errors below the line or the tree of an exchange."""
    payloads: PayloadDecoder | None = None
    """Decodes keys and values of records, if the user wants it."""
    as_text: bool = False
    """Whether records inside messages are :class:`~kdissect.protocol.json_form.RawText`, for a writer of
    JSON."""


PLAIN = Options()
