"""The columns of a batch in tables and messages. Tables can be listed without importing the decoders of
records."""

from __future__ import annotations

BATCH_COLUMNS = (
    ("position", "int64", "position of its first byte in the record set or file"),
    ("size", "int64", "bytes that it announces, including the header"),
    ("magic", "int16", "version of the record format: 0, 1 or 2"),
    ("base_offset", "int64", "offset of the first record; null if unknown"),
    ("last_offset", "int64", "offset of the last record, from the header"),
    ("codec", "text", "none, gzip, snappy, lz4 or zstd"),
    ("timestamp_type", "text", "CreateTime, LogAppendTime or NoTimestampType"),
    ("base_timestamp", "int64", "ms since the epoch; null in magic 0 and 1"),
    ("max_timestamp", "int64", "ms since the epoch; -1 for none"),
    ("producer_id", "int64", "-1 for none"),
    ("producer_epoch", "int16", "-1 for none"),
    ("base_sequence", "int32", "-1 for none"),
    ("partition_leader_epoch", "int32", "-1 for none"),
    ("is_transactional", "bool", "whether it is part of a transaction"),
    ("is_control", "bool", "whether its records are control records"),
    ("delete_horizon_ms", "int64", "when the cleaner may remove tombstones and markers"),
    ("count", "int64", "number of records, from the header; null if unknown"),
    ("crc", "int64", "the checksum as stored"),
    ("crc_valid", "bool", "whether the checksum is right; null if the batch is cut"),
    ("partial", "bool", "whether the bytes end inside the batch"),
)
"""Name, type and meaning of the columns of a :class:`Batch`, in all tables and messages."""
