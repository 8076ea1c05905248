"""What is in the keys and values of records: which form they have, their schema, and the value.

    bytes, headers ─► framing ─► schema ─► value        (:mod:`kdissect.payload.decoder`)

Nothing here opens a file or a connection: schemas come as text (:mod:`kdissect.payload.schemas`). Bytes and
schemas are hostile until proven otherwise. Every decoder has a bound for depth and for the number of values,
and raises :class:`~kdissect.model.DecodeError` only.
"""
