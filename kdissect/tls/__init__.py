"""TLS: the bytes of a connection → the decrypted data, with the secrets that the user has.

It is one layer between reassembly and framing. Chunks and gaps of both directions go into
:class:`kdissect.tls.decrypting.Tls`; chunks and gaps of the decrypted data come out.
"""
