"""A client of Kafka brokers, made of the analyser's own parts. It sends and receives ordinary exchanges.

transcript ─ numbers connections, packets and exchanges of a run, and keeps the packets for ``-w``.
session    ─ one connection: requests in, bytes out; bytes in, exchanges out (sans I/O).
io         ─ sockets, with reach and tls; loop: the event loop and time.
diagnosis  ─ why a broker does not answer as a broker should.
versions, sasl, security ─ versions and login, before the first request.
ready      ─ a connection after that.
cluster    ─ finds brokers by Metadata, and connects to each.
offsets, fetch, produce, replay, conformance ─ the requests.
"""
