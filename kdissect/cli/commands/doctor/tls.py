"""``kdissect doctor tls``: how to get the secrets that decrypt TLS."""

from __future__ import annotations

HOW_TO = """\
TLS is decrypted with the secrets that one end of a connection writes down: a key log. Either end will do.
A key log decrypts what is recorded with it. Keep it as safe as what it protects, and delete it afterwards.

Java clients and brokers   an agent in the JVM, such as extract-tls-secrets or jSSLKeyLog:
                             KAFKA_OPTS=-javaagent:AGENT.jar=/FOLDER/keys.log
                           It writes what is negotiated after it was loaded: restart, or attach it before
                           the client connects.
librdkafka                 it writes none itself. A library in front of OpenSSL does (LD_PRELOAD=sslkeylog.so
                           with SSLKEYLOGFILE=keys.log), and so does eCapture, from outside. This holds for
                           all that is made on it: confluent-kafka in Python, Go and .NET, kcat.
Python                     ssl.create_default_context() obeys SSLKEYLOGFILE; of any other context set
                           context.keylog_filename. Hand the context over as ssl_context.
Go                         tls.Config{KeyLogWriter: file}, for franz-go and Sarama alike.
Node.js                    node --tls-keylog=keys.log

Then
  kdissect read capture.pcapng --keylog keys.log     --keylog takes a directory too, and may be given often;
  kdissect live -i eth0 --keylog keys.log            without it SSLKEYLOGFILE counts. While packets come in it
                                                     is followed as it grows.
  kdissect read capture.pcapng                       where the capture has its secrets embedded
  kdissect read capture.pcapng --rsa-key broker.pem  TLS 1.2 with RSA key exchange only: what has forward
                                                     secrecy no private key opens

The handshake must be in the capture: start capturing before the client connects.
kdissect read -T connections says of each connection, under tls, what its handshake shows and, under dark, why
it is not decrypted.
"""
