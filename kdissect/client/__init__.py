"""A client of Kafka brokers, made of the analyser's own parts. It sends and receives ordinary exchanges.

transcript ─ numbers connections, packets and exchanges of a run, and keeps the packets for ``-w``.
session    ─ one connection: requests in, bytes out; bytes in, exchanges out (sans I/O).
io         ─ sockets, with reach and tls; loop: the event loop and time.
diagnosis  ─ why a broker does not answer as a broker should.
versions, sasl, security ─ what client and broker agree on before the first question.
ready      ─ a connection on which they agreed.
cluster    ─ brokers found by Metadata and asked directly.
offsets, fetch, produce, replay, conformance ─ the questions.
"""
