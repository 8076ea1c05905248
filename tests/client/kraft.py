"""A real broker for the long suite: its jars from Maven Central, started with the machine's Java.

``mvn`` fetches the jars, from wherever it is configured to; the folder ``KAFKA_TEST_JARS`` keeps them. One
node is broker and controller, with listeners for plaintext, TLS and SASL on free ports of this machine.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.client.certificates import make

USER, PASSWORD = "tim", "tanstaaftanstaaf"

JARS = Path(os.environ.get("KAFKA_TEST_JARS") or Path(tempfile.gettempdir()) / "kafka-test-jars")


class Release(NamedTuple):
    """What is started: the broker's version, and that of the console tools (which a release may lack)."""

    broker: str
    tools: str


RELEASES = (Release("3.9.1", "3.9.1"), Release("4.4.0", "4.3.1"))

# kafka-tools-api of the newest release is not in every mirror; any of these does.
_POM = """<project><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId>
<version>1</version><dependencies>{dependencies}
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId>
<version>4.3.1</version></dependency></dependencies></project>"""
_DEPENDENCY = """<dependency><groupId>org.apache.kafka</groupId><artifactId>{name}</artifactId>
<version>{version}</version><exclusions><exclusion><groupId>org.apache.kafka</groupId>
<artifactId>kafka-tools-api</artifactId></exclusion></exclusions></dependency>"""


def jars(name: str, version: str) -> Path:
    """A folder with the jars of an artifact and all that it needs, fetched if it is not there."""
    folder = JARS / f"{name}-{version}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as work:
            pom = Path(work) / "pom.xml"
            pom.write_text(_POM.format(dependencies=_DEPENDENCY.format(name=name, version=version)))
            out = Path(work) / "jars"
            command = [
                "mvn",
                "-q",
                "-B",
                "-f",
                str(pom),
                "dependency:copy-dependencies",
                f"-DoutputDirectory={out}",
            ]
            subprocess.run([*command, "-DincludeScope=runtime"], check=True, timeout=900)
            JARS.mkdir(parents=True, exist_ok=True)
            shutil.move(out, folder)
    return folder


def java(folder: Path, main: str, *arguments: str) -> list[str]:
    """The command that runs a class of a folder of jars."""
    return ["java", "-Xmx384m", "-cp", f"{folder}/*", main, *arguments]


def unsecured_token() -> str:
    """A token that Kafka's own validator for tests takes: a JWS without a signature."""
    now = int(time.time())

    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'sub': USER, 'iat': now, 'exp': now + 3600})}."


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Kraft:
    """One running broker; a context manager."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.folder = Path(tempfile.mkdtemp(prefix="kraft-"))
        self.plain, self.sasl, self.tls, self.mutual, self.controller = _free_ports(5)
        self.ca = self.folder / "ca.pem"
        self.client = make(self.folder, "client")
        """What a client has to show at the listener ``mutual``."""
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, port: int | None = None) -> str:
        """Of a listener, the plaintext one by default."""
        return f"127.0.0.1:{port or self.plain}"

    def __enter__(self) -> Kraft:
        broker_jars = jars("kafka_2.13", self.release.broker)
        self._make_keys()
        properties = self.folder / "server.properties"
        properties.write_text(self._properties())
        subprocess.run(
            java(
                *(broker_jars, "kafka.tools.StorageTool", "format", "-t", "abcdefghijklmnopqrstuv"),
                *("-c", str(properties)),
                *(
                    word
                    for digest in ("SCRAM-SHA-256", "SCRAM-SHA-512")
                    for word in ("--add-scram", f"{digest}=[name={USER},password={PASSWORD}]")
                ),
            ),
            check=True,
            capture_output=True,
            timeout=120,
        )
        with open(self.folder / "broker.log", "wb") as log:
            self._process = subprocess.Popen(
                java(broker_jars, "kafka.Kafka", str(properties)), stdout=log, stderr=log
            )
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.plain), 1).close()
                return self
            except OSError:
                time.sleep(0.5)
        self.__exit__()
        raise RuntimeError(f"no broker: see {self.folder}/broker.log")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if not (self.folder / "keep").exists():
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _make_keys(self) -> None:
        store = self.folder / "broker.p12"
        keytool = ["keytool", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", "changeit"]
        names = ["-alias", "broker", "-dname", "CN=broker", "-ext", "SAN=IP:127.0.0.1,DNS:localhost"]
        subprocess.run([*keytool, "-genkeypair", "-keyalg", "EC", *names], check=True, capture_output=True)
        export = ["-exportcert", "-rfc", "-alias", "broker", "-file", str(self.ca)]
        subprocess.run([*keytool, *export], check=True, capture_output=True)
        trusted = ["keytool", "-keystore", str(self.folder / "clients.p12"), "-storetype", "PKCS12"]
        trusted += [
            "-storepass",
            "changeit",
            "-importcert",
            "-noprompt",
            "-file",
            str(self.client.certificate),
        ]
        subprocess.run(trusted, check=True, capture_output=True)

    def _properties(self) -> str:
        prefix = "listener.name.sasl"
        module = "org.apache.kafka.common.security"
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller}",
            "listeners": ",".join(
                f"{name}://127.0.0.1:{port}"
                for name, port in (
                    ("PLAINTEXT", self.plain),
                    ("SASL", self.sasl),
                    ("TLS", self.tls),
                    ("MUTUAL", self.mutual),
                    ("CONTROLLER", self.controller),
                )
            ),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,MUTUAL:SSL,CONTROLLER:PLAINTEXT"
            ),
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.mutual.ssl.client.auth": "required",
            "ssl.truststore.location": str(self.folder / "clients.p12"),
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.password": "changeit",
            "ssl.keystore.location": str(self.folder / "broker.p12"),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": "changeit",
            "ssl.key.password": "changeit",
        }
        for mechanism, login in (
            ("plain", f'plain.PlainLoginModule required user_{USER}="{PASSWORD}"'),
            ("scram-sha-256", "scram.ScramLoginModule required"),
            ("scram-sha-512", "scram.ScramLoginModule required"),
            ("oauthbearer", "oauthbearer.OAuthBearerLoginModule required"),
        ):
            lines[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{module}.{login};"
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def tool(self, main: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """What one of Kafka's own tools prints."""
        # Until 3.9 some tools are in the broker's own jar.
        folder = (
            jars("kafka_2.13", self.release.tools)
            if main.startswith("kafka.")
            else jars("kafka-tools", self.release.tools)
        )
        done = subprocess.run(
            java(folder, main, "--bootstrap-server", self.address(), *arguments),
            input=stdin,
            capture_output=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{main}: {done.stderr.decode()[-2000:]}")
        return done.stdout
