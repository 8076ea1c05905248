"""A client of Kafka brokers made of the analyser's own parts: what it says and hears are ordinary exchanges.

transcript ─ numbers connections, packets and exchanges of a run, and keeps the packets for ``-w``
session    ─ one connection: requests in, bytes out; bytes in, exchanges out (sans I/O)
versions, sasl, security ─ what has to be settled before anything else is asked
cluster    ─ brokers found by Metadata and asked directly
metadata, produce, fetch, replay, conformance ─ what is asked
io         ─ sockets: the only module that knows them
"""
