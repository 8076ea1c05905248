"""``kdissect doctor tls``: how to get the secrets that decrypt TLS."""

from __future__ import annotations

HOW_TO = """\
TLS is decrypted with the secrets that one end of a connection writes down: a key log. Either end will do.
Whoever has a key log can decrypt its connections. Keep it as safe as their data, and delete it afterwards.

Java clients and brokers   an agent in the JVM, such as extract-tls-secrets or jSSLKeyLog:
                             KAFKA_OPTS=-javaagent:AGENT.jar=/FOLDER/keys.log
                           It writes the secrets of connections that begin after it was loaded: restart, or
                           attach it before the client connects.
librdkafka                 writes no key log itself. A library in front of OpenSSL does: set
                           LD_PRELOAD=sslkeylog.so and SSLKEYLOGFILE=keys.log. eCapture does too, from
                           outside the process. The same holds for clients built on librdkafka:
                           confluent-kafka in Python, Go and .NET, kcat.
Python                     ssl.create_default_context() obeys SSLKEYLOGFILE. For any other context, set
                           context.keylog_filename. Give the context to the client as ssl_context.
Go                         tls.Config{KeyLogWriter: file}, for franz-go and Sarama alike.
Node.js                    node --tls-keylog=keys.log

Then
  kdissect read capture.pcapng --keylog keys.log     --keylog takes a directory too, and may be given often.
                                                     Without it, kdissect uses SSLKEYLOGFILE.
  kdissect live -i eth0 --keylog keys.log            kdissect reads new lines of the key log as they come.
  kdissect read capture.pcapng                       if the capture contains its secrets
  kdissect read capture.pcapng --rsa-key broker.pem  TLS 1.2 with RSA key exchange only: a private key cannot
                                                     decrypt connections with forward secrecy

The handshake must be in the capture: start capturing before the client connects.
kdissect read -T connections prints, in the column tls, what the handshake of each connection shows. There,
dark says why a connection is not decrypted.
"""
