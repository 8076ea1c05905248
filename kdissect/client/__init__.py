"""A client of Kafka brokers made of the analyser's own parts: what it says and hears are ordinary exchanges.

transcript ─ numbers connections, packets and exchanges of a run, and keeps the packets for ``-w``.
session    ─ one connection: requests in, bytes out; bytes in, exchanges out (sans I/O).
io         ─ sockets, with reach and tls; loop: the event loop and time.
diagnosis  ─ why a broker does not answer as a broker should.
versions, sasl, security ─ what has to be settled before anything else is asked.
ready      ─ a connection on which that is settled.
cluster    ─ brokers found by Metadata and asked directly.
offsets, fetch, produce, replay, conformance ─ what is asked.
"""
