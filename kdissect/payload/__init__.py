"""The keys and values of records: their format, their schema, and their value.

    bytes, headers ─► framing ─► schema ─► value        (:mod:`kdissect.payload.decoder`)

This package opens no file and no connection: schemas come as text (:mod:`kdissect.payload.schemas`). It
treats bytes and schemas as hostile. Every decoder limits the depth and the number of values, and raises only
:class:`~kdissect.model.DecodeError`.
"""
