"""The long suite of the client, against real brokers: ``python -m tests.client.long [VERSION…]``.

For each release a broker is started (:mod:`tests.client.kraft`), and what a user is promised is checked:
records both ways between the client and Kafka's own console tools, every version of every advertised API,
logins and TLS, and that a capture of it reads as what the client printed. It prints a row a check and ends
with exit code 1 where one failed. It needs Java, mvn, keytool, and for the last check tcpdump as root.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kdissect.client.produce import magics_of
from kdissect.protocol import apis
from kdissect.record.compression import CODECS
from tests.client.certificates import make
from tests.client.kraft import PASSWORD, RELEASES, USER, Kraft, unsecured_token

_PRODUCER = ("org.apache.kafka.tools.ConsoleProducer", "kafka.tools.ConsoleProducer")
_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


class FailedError(Exception):
    """A check did not come out right."""


def run(*arguments: object, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The client's command line, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kdissect", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=300,
        check=False,
    )


def rows(*arguments: object, stdin: bytes = b"", **environment: str) -> list[dict[str, Any]]:
    """What it prints as NDJSON."""
    done = run(*arguments, stdin=stdin, **environment)
    if done.returncode:
        raise FailedError(done.stderr.decode().strip())
    return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]


def expect(wanted: object, found: object) -> None:
    """:raises FailedError: they differ."""
    if wanted != found:
        raise FailedError(f"wanted {wanted!r}, found {found!r}")


def advertised(broker: Kraft) -> dict[str, range]:
    (row,) = rows("client", "send", broker.address(), "--api", "ApiVersions", "--version", 0, "-T", "ndjson")
    return {
        apis.api_name(each["apiKey"]): range(each["minVersion"], each["maxVersion"] + 1)
        for each in row["response"]["body"]["apiKeys"]
    }


def console_reads_what_we_produce(broker: Kraft) -> str:
    versions = advertised(broker)["Produce"]
    if broker.release.broker.startswith("4"):
        versions = versions[3:]  # it says that it has the older ones, for old librdkafkas, and has not
    wanted = []

    def put(value: str, *options: object) -> None:
        words = ("produce", broker.address(), "ours", "--key", "k", "--value", value, "-T", "ndjson")
        rows("client", *words, *options)
        wanted.append(f"k:{value}")

    for codec in CODECS:
        for version in (versions[0], 5, versions[-1]):
            if codec == "zstd" and version < 7:
                continue
            put(f"{codec}-v{version}", "--create", "--codec", codec, "--api-version", version)
    options = ("--topic", "ours", "--from-beginning", "--timeout-ms", "8000", "--property", "print.key=true")
    for acks in ("all", "1", "0"):
        put(f"acks={acks}", "--acks", acks)
    for magic in (0, 1, 2):
        if any(magic in magics_of(each) for each in versions):
            put(f"magic {magic}", "--message-format", magic)
    said = broker.tool(_CONSUMER, *options, "--property", "key.separator=:").decode().split("\n")
    expect(wanted, [line for line in said if line.startswith("k:")])
    what = f"{len(CODECS)} codecs, Produce v{versions[0]}, v5, v{versions[-1]}, acks -1, 1, 0, every format"
    return f"{len(wanted)} records: {what}"


def we_read_what_the_console_produces(broker: Kraft) -> str:
    wanted = []
    for codec in CODECS:
        lines = [f"{codec}-{at}" for at in range(20)]
        main = _PRODUCER[0]
        options = ("--topic", f"theirs-{codec}", "--compression-codec", codec)
        try:
            broker.tool(main, *options, stdin="\n".join(lines).encode())
        except RuntimeError:
            broker.tool(_PRODUCER[1], *options, stdin="\n".join(lines).encode())
        wanted += lines
        versions = advertised(broker)["Fetch"]
        asked = [each for each in (versions[0], 6, versions[-1]) if codec != "zstd" or each >= 10]
        for version in dict.fromkeys(asked):
            found = rows("client", "fetch", broker.address(), f"theirs-{codec}", "--api-version", version)
            expect(lines, [each["value"] for each in found])
            expect({codec}, {each["codec"] for each in found})
    return f"{len(wanted)} records, {len(CODECS)} codecs, Fetch v{versions[0]}, v6, v{versions[-1]}"


def seed_requests(broker: Kraft) -> str:
    found = rows("client", "metadata", broker.address(), "ours", "--api-version", 1, "-T", "ndjson")
    expect([("Metadata", 1, None)], [(each["api"], each["api_version"], each["error"]) for each in found])
    common = (broker.address(), "ours")
    (said,) = rows("client", "produce", *common, "--value", "x", "--api-version", 5, "-T", "records")
    at = said["assigned_offset"]
    (got,) = rows("client", "fetch", *common, "--from", at, "-c", 1, "--api-version", 6)
    expect((5, 6, at, "x"), (said["api_version"], got["api_version"], got["offset"], got["value"]))
    (newest,) = rows("client", "fetch", *common, "--from", at, "-c", 1)
    expect("x", newest["value"])
    return f"METADATA v1, PRODUCE v5, FETCH v6, and Fetch v{newest['api_version']}: the record is the same"


def by_api(checks: list[dict[str, Any]]) -> Iterator[str]:
    """A line an API: the versions that were asked, how many answers were right, and their error codes."""
    answers: dict[str, list[dict[str, Any]]] = {}
    for each in checks:
        if each["check"] == "answer":
            answers.setdefault(each["api"], []).append(each)
    for api, of in answers.items():
        versions = [each["api_version"] for each in of]
        outcomes = Counter(each["outcome"] for each in of)
        errors = Counter(each["error"] for each in of if each["error"])
        said = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        codes = "; ".join(f"{name} ({count})" for name, count in errors.items())
        yield f"{api} {min(versions)}-{max(versions)}: {said}{': ' + codes if codes else ''}"


def every_version(broker: Kraft) -> str:
    options = ("--changing", "--yes", "--timeout", 15, "-T", "ndjson")
    done = run("client", "conformance", broker.address(), *options)
    found = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
    if not found:
        raise FailedError(done.stderr.decode())
    for line in by_api(found):
        print(f"    {line}", flush=True)  # noqa: T201
    outcomes: dict[str, Counter[str]] = {}
    for each in found:
        outcomes.setdefault(each["check"], Counter())[each["outcome"]] += 1
    for each in found:
        if each["outcome"] not in ("right", "skipped"):
            what = f"{each['check']} {each['api']} v{each['api_version']}"
            print(f"    {what}: {each['outcome']}: {each['detail']}")  # noqa: T201
    if any(each["outcome"] == "wrong" for each in found):
        raise FailedError(str(outcomes))
    errors = sum(1 for each in found if each["check"] == "answer" and each["error"])
    return f"{outcomes}; {errors} answers with an error code".replace("Counter", "")


def logins(broker: Kraft) -> str:
    where = broker.address(broker.sasl)
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        common = ("client", "metadata", where, "--sasl", mechanism, "--user", USER, "-T", "ndjson")
        rows(*common, KDISSECT_PASSWORD=PASSWORD)
        wrong = run(*common, KDISSECT_PASSWORD="wrong")
        expect((6, 1), (wrong.returncode, wrong.stderr.count(b"\n")))
        if b"SASL_AUTHENTICATION_FAILED" not in wrong.stderr:
            raise FailedError(wrong.stderr.decode())
    bearer = ("client", "metadata", where, "--sasl", "OAUTHBEARER", "-T", "ndjson")
    rows(*bearer, KDISSECT_TOKEN=unsecured_token())
    wrong = run(*bearer, KDISSECT_TOKEN="a.b.c")
    expect((6, 1), (wrong.returncode, wrong.stderr.count(b"\n")))
    return "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; a wrong secret is one line and 6"


def tls(broker: Kraft) -> str:
    where, mutual = broker.address(broker.tls), broker.address(broker.mutual)
    ca, own = (
        ("--tls-ca", broker.ca),
        ("--tls-cert", broker.client.certificate, "--tls-key", broker.client.key),
    )
    stranger = make(broker.folder, "stranger")
    for arguments in ((where, *ca), (where, "--tls-insecure"), (mutual, *ca, *own)):
        rows("client", "metadata", *arguments, "-T", "ndjson")
    failing: tuple[tuple[tuple[object, ...], str], ...] = (
        ((where, "--tls"), "not trusted"),
        ((where, *ca, "--tls-name", "other"), "not trusted"),
        ((where,), "it speaks TLS on this port: give --tls"),
        ((broker.address(), "--tls-insecure"), "leave --tls out"),
        ((broker.address(broker.sasl),), "--sasl"),
        ((mutual, *ca), "it wants a certificate of the client"),
        ((mutual, *ca, "--tls-cert", stranger.certificate, "--tls-key", stranger.key), "certificate"),
    )
    for options, why in failing:
        done = run("client", "metadata", *options, "--timeout", 5)
        expect((6, 1), (done.returncode, done.stderr.count(b"\n")))
        if why not in done.stderr.decode():
            raise FailedError(f"wanted {why!r}: {done.stderr.decode().strip()}")
    said = "untrusted, another name, no TLS to TLS, TLS to no TLS, no login, no certificate, a stranger's"
    return f"verified, not verified, both; {said}: one line and 6"


@contextmanager
def captured(path: Path, port: int) -> Iterator[None]:
    """What goes over a port of this machine, into a file."""
    command = ["tcpdump", "-i", "lo", "-s", "0", "-U", "-w", str(path), "tcp", "port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as dump:
        assert dump.stderr is not None
        dump.stderr.readline()
        time.sleep(0.5)
        try:
            yield
        finally:
            time.sleep(1)
            dump.send_signal(signal.SIGINT)
            dump.wait(10)


def a_capture_reads_as_what_was_printed(broker: Kraft) -> str:
    if shutil.which("tcpdump") is None:
        return "skipped: there is no tcpdump"
    capture, own = broker.folder / "dump.pcap", broker.folder / "own.pcapng"
    printed: list[dict[str, Any]] = []
    with captured(capture, broker.plain):
        common = ("--all", "-T", "ndjson", "-w", own)
        printed += rows("client", "fetch", broker.address(), "ours", *common)
        again = rows("read", "-T", "ndjson", own)
        expect(printed, again)
        printed += rows(
            "client", "produce", broker.address(), "ours", "--value", "y", "--all", "-T", "ndjson"
        )
        printed += rows("client", "metadata", broker.address(), "--all", "-T", "ndjson")
    seen = rows("read", "-T", "ndjson", capture)
    same = (
        "api_key",
        "api_version",
        "correlation_id",
        "client",
        "error",
        "topics",
        "faults",
        "request",
        "response",
    )

    def compared(found: list[dict[str, Any]]) -> list[list[Any]]:
        return [[each[name] for name in same] for each in found]

    ours = {each["client"] for each in printed}
    expect(compared(printed), compared([each for each in seen if each["client"] in ours]))
    return f"{len(printed)} exchanges: the same by tcpdump, by -w and as printed"


CHECKS = (
    console_reads_what_we_produce,
    we_read_what_the_console_produces,
    seed_requests,
    logins,
    tls,
    a_capture_reads_as_what_was_printed,
    every_version,
)


def main(versions: list[str]) -> int:
    failed = 0
    if unknown := set(versions) - {release.broker for release in RELEASES}:
        known = ", ".join(release.broker for release in RELEASES)
        print(f"no such release: {', '.join(sorted(unknown))}; there are {known}", file=sys.stderr)  # noqa: T201
        return 2
    for release in RELEASES:
        if versions and release.broker not in versions:
            continue
        with Kraft(release) as broker:
            for check in CHECKS:
                begin = time.monotonic()
                try:
                    said, mark = check(broker), "ok"
                except (
                    FailedError,
                    RuntimeError,
                    OSError,
                    ValueError,
                    LookupError,
                    subprocess.SubprocessError,
                ) as error:
                    said, mark, failed = f"{type(error).__name__}: {error}", "FAILED", failed + 1
                took = time.monotonic() - begin
                print(f"{release.broker}  {mark:6}  {took:5.1f} s  {check.__name__}: {said}", flush=True)  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
