"""TLS: the bytes of a connection → what they say, with the secrets that people have.

One layer between reassembly and framing: chunks and gaps of both directions go into
:class:`kdissect.tls.decrypting.Tls`, chunks and gaps of what was encrypted come out.
"""
