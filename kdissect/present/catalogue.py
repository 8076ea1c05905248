"""The columns of the tables beside exchanges: records, batches, connections, faults."""

from __future__ import annotations

from kdissect.present.batch_columns import BATCH_COLUMNS
from kdissect.present.columns import EXCHANGES, Table, attribute_column, dict_column

_RECORD_COLUMNS = (
    dict_column("topic", "text", "name of the topic, if the capture shows it"),
    dict_column("topic_id", "text", "the topic's id, if the message contains it"),
    dict_column("partition", "int32", "the partition"),
    dict_column(
        "offset",
        "int64",
        "offset of the record; in Produce requests counted from the batch's base offset as sent",
    ),
    dict_column(
        "assigned_offset", "int64", "the offset that the broker assigned, if the response contains it"
    ),
    dict_column("timestamp", "int64", "ms since the epoch; null if it has none"),
    dict_column("timestamp_type", "text", "CreateTime, LogAppendTime or NoTimestampType"),
    dict_column("key", "bytes", "the key"),
    dict_column("value", "bytes", "the value"),
    dict_column("headers", "headers", "the headers, in order"),
    dict_column("key_size", "int64", "bytes of the key; null for a null key"),
    dict_column("value_size", "int64", "bytes of the value; null for a null value"),
    dict_column("magic", "int16", "version of the record format: 0, 1 or 2"),
    dict_column("codec", "text", "none, gzip, snappy, lz4 or zstd"),
    dict_column("producer_id", "int64", "the idempotent producer's id"),
    dict_column("producer_epoch", "int16", "the producer's epoch"),
    dict_column("sequence", "int32", "sequence number of the record"),
    dict_column("transactional", "bool", "whether the batch is part of a transaction"),
    dict_column("control", "json", "contents of a control record; null for other records"),
    dict_column("partition_leader_epoch", "int32", "epoch of the leader that appended the batch"),
    dict_column("batch_offset", "int64", "base offset of the batch"),
    dict_column("crc_valid", "bool", "whether the batch's checksum is right; null if the batch is cut"),
)

_DECODED_COLUMNS = (
    dict_column(
        "keyDecoded",
        "json",
        "the decoded key: with --decode-as or --schemas, and with --embedded in Kafka's own topics",
        True,
    ),
    dict_column("valueDecoded", "json", "the same for the value", True),
    dict_column(
        "keyFormat",
        "json",
        "with --decode-as or --schemas: format of the key, confidence (certain, likely, possible), "
        "registry, schema, name, envelope, compression; problem and offset if it cannot be decoded",
        True,
    ),
    dict_column("valueFormat", "json", "the same for the value", True),
)

_PLACE_COLUMNS = (
    dict_column("exchange", "int64", "number of the exchange"),
    dict_column("connection", "int64", "number of the connection"),
    dict_column("direction", "text", "produce (in a request) or fetch (in a response)"),
    dict_column("api", "text", "the API, if it is neither Produce nor Fetch", True),
    dict_column("api_version", "int16", "version of the API"),
)

RECORDS = Table(
    "records",
    (
        *_PLACE_COLUMNS,
        *_RECORD_COLUMNS,
        *_DECODED_COLUMNS,
    ),
)

LOG_RECORDS = Table(
    "records",
    (
        dict_column("file", "text", "the segment or snapshot file"),
        dict_column("position", "int64", "position of the batch in the file"),
        *_RECORD_COLUMNS,
        *_DECODED_COLUMNS,
    ),
)

BATCHES = Table(
    "batches",
    (dict_column("file", "text", "the segment file"), *(dict_column(*column) for column in BATCH_COLUMNS)),
)

EXCHANGE_BATCHES = Table(
    "batches",
    (
        *_PLACE_COLUMNS,
        *_RECORD_COLUMNS[:3],
        *(dict_column(*column) for column in BATCH_COLUMNS),
    ),
)
"""The batches of exchanges in captures."""

PACKETS = Table(
    "packets",
    (
        dict_column(
            "packet", "int64", "number of the packet in the input: 1, 2, … (Wireshark's frame.number)"
        ),
        dict_column("time_ns", "int64", "when it was captured, ns since the epoch"),
        dict_column("interface", "int32", "index of the interface in the input"),
        dict_column("link_type", "int32", "LINKTYPE number"),
        dict_column("captured_size", "int64", "bytes that were captured"),
        dict_column("wire_size", "int64", "bytes on the wire"),
        dict_column(
            "source", "text", "address:port of the sender, if the packet carries or completes a TCP segment"
        ),
        dict_column("destination", "text", "address:port of the receiver"),
        dict_column("sequence", "int64", "TCP sequence number"),
        dict_column("acknowledgement", "int64", "TCP acknowledgement number; null without the flag"),
        dict_column("flags", "int16", "TCP flags"),
        dict_column("payload_size", "int64", "TCP payload bytes on the wire"),
    ),
)

CONNECTIONS = Table(
    "connections",
    (
        attribute_column("connection", "int64", "0, 1, … by the first packet (Wireshark's tcp.stream)"),
        attribute_column(
            "client", "text", "address:port of the client; with the PROXY protocol the one in its header"
        ),
        attribute_column("broker", "text", "address:port of the broker"),
        attribute_column("start_ns", "int64", "time of the first packet, ns since the epoch"),
        attribute_column("end_ns", "int64", "time of the last packet, ns since the epoch"),
        attribute_column("end", "text", "fin, rst, open, reused or evicted"),
        attribute_column("packets", "int64", "packets of both directions"),
        attribute_column("bytes_to_broker", "int64", "bytes the client sent, each once"),
        attribute_column("bytes_from_broker", "int64", "bytes the broker sent, each once"),
        attribute_column("retransmitted", "int64", "bytes sent again"),
        attribute_column("gaps", "int64", "gaps in the stream that were not captured"),
        attribute_column("gap_bytes", "int64", "bytes that were not captured"),
        attribute_column("skipped_bytes", "int64", "captured bytes that are in no frame"),
        attribute_column("exchanges", "int64", "number of exchanges"),
        attribute_column("protocol", "text", "kafka, tls, http or unknown"),
        attribute_column("client_id", "text", "the name the client gives itself"),
        attribute_column("software", "text", "name and version of the client, from ApiVersions"),
        attribute_column("sasl", "json", "mechanism, principal, outcome and expires_ms"),
        attribute_column(
            "tls",
            "json",
            "from the handshake: version, suite, server_name, alpn, certificates, resumed, alerts …; "
            "dark: why it is not decrypted; null without TLS",
        ),
        attribute_column(
            "proxies",
            "json",
            "from the preambles of proxies: protocol, proxy (its address), client, destination or target, "
            "login, outcome, size in bytes; null without proxies",
        ),
        attribute_column("opened", "bool", "whether the capture contains its beginning (the client's SYN)"),
        attribute_column(
            "capture_point",
            "text",
            "capture point, if several captured the same traffic (each has a row); null if there is only one",
        ),
        attribute_column(
            "clock_ahead_ns",
            "int64",
            "how far its clock is ahead of the clock at the capture point nearest to the broker; null "
            "there, or if unknown",
        ),
    ),
)

FAULTS = Table(
    "faults",
    (
        attribute_column("layer", "text", "file, link, tcp, frame, session, message, records or tls"),
        attribute_column("kind", "text", "kind of the fault (kdissect fields faults lists them)"),
        attribute_column("message", "text", "what is wrong, in words"),
        attribute_column("packet", "int64", "the packet in which it was found"),
        attribute_column("connection", "int64", "number of the connection"),
        attribute_column("exchange", "int64", "number of the exchange"),
        attribute_column(
            "offset",
            "int64",
            "offset in the file (layer file), the direction's stream (tcp, frame), the message (session, "
            "message) or the record set (records)",
        ),
    ),
)

TABLES = {table.name: table for table in (EXCHANGES, RECORDS, CONNECTIONS, FAULTS)}
"""The tables of ``read``."""
