"""``kdissect doctor``: what is installed, what is missing, which definitions and configuration are in use."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Iterator
from glob import glob
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import click

from kdissect import __version__, leaves
from kdissect.cli.capturing import line_without_root, live_in_own_home, way_out
from kdissect.cli.commands.doctor.cluster import cluster_rows
from kdissect.cli.commands.doctor.spark import HOW_TO as SPARK_HOW_TO
from kdissect.cli.commands.doctor.tls import HOW_TO as TLS_HOW_TO
from kdissect.cli.commands.doctor.wireshark import wireshark_row
from kdissect.cli.config import config_path, is_public, load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import DONE, UNREADABLE
from kdissect.cli.output import TextOutput, open_output
from kdissect.leaves import LEAVES, PURE
from kdissect.present.tables import json_line
from kdissect.protocol import apis
from kdissect.protocol.library import library, package_folder, user_folder
from kdissect.system.confining import in_force, means
from kdissect.wording import how_to_install

PACKAGES = (
    ("click", "click", "the command line"),
    ("crc32c", "crc32c", "checksums of record batches"),
    ("cryptography", "cryptography", "decrypting TLS"),
    ("dpkt", "dpkt", "uncommon link layers"),
    ("google-re2", "re2", "regular expressions of display filters"),
    ("lark", "lark", "display filters"),
    ("lz4", "lz4", "lz4 records and captures"),
    ("numpy", "numpy", "the screens"),
    ("python-snappy", "snappy", "snappy records"),
    ("scapy", "scapy", "capturing"),
    ("textual", "textual", "the screens"),
    ("zstandard", "zstandard", "zstd records and captures"),
)
"""The packages that kdissect needs: package, its module, and its use."""

EXTRAS = (
    ("pyarrow", "pyarrow", "arrow", "Parquet and Arrow"),
    ("prometheus-client", "prometheus_client", "metrics", "metrics of live captures"),
    ("textual-serve", "textual_serve", "web", "the screens in a browser"),
    ("pyspark", "pyspark", "spark", "many captures at once, on Spark"),
)
"""The optional packages: package, its module, the extra that installs it, and its use."""

_TOPICS = {"tls": TLS_HOW_TO, "spark": SPARK_HOW_TO}

Row = tuple[str, str, str]
"""A name; ``ok``, ``missing`` or another word; and details."""


@click.command()
@click.argument("topic", required=False, type=click.Choice(tuple(_TOPICS)))
@click.option("-T", "form", type=click.Choice(("text", "ndjson")), default="text")
@click.option(
    "--cluster",
    metavar="MASTER",
    help="With spark: run a small job on this cluster, and say what its workers lack.",
)
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="With --cluster: Spark's configuration.")
@click.option(
    "--path",
    "paths",
    multiple=True,
    metavar="PATH",
    help="With --cluster: a capture, or a folder for tables, that workers must reach. May be given often.",
)
def command(
    topic: str | None, form: str, cluster: str | None, conf: tuple[str, ...], paths: tuple[str, ...]
) -> int:
    """Say what is installed, what is missing, and which definitions and configuration are in use.

    \b
    kdissect doctor tls      how to get the secrets that decrypt TLS
    kdissect doctor spark    where the pipeline can run, and what it needs there
    kdissect doctor spark --cluster spark://HOST:7077 --path /captures --path /tables

    The exit code is 3 if kdissect needs something that is missing.
    """
    if cluster is not None and topic != "spark":
        raise Wrong("--cluster needs kdissect doctor spark")
    if cluster is None and (conf or paths):
        option = "--conf" if conf else "--path"
        raise Wrong(f"{option} needs --cluster MASTER, as in kdissect doctor spark --cluster 'local[*]'")
    if cluster is not None:
        rows = list(cluster_rows(cluster, conf, paths))
    elif topic is not None:
        with open_output(None) as file:
            TextOutput(file).line(_TOPICS[topic].rstrip())
        return DONE
    else:
        live_in_own_home()  # sudo may have left another user's folder, which this user may not read
        rows = list(_rows())
    with open_output(None) as file:
        output = TextOutput(file)
        for what, state, details in rows:
            if form == "ndjson":
                file.write(json_line({"what": what, "state": state, "details": details}))
            else:
                output.line(f"{what:<16} {state:<9} {details}".rstrip())
    return UNREADABLE if any(state in ("missing", "differs") for _, state, _ in rows) else DONE


def _rows() -> Iterator[Row]:
    yield "kdissect", "ok", f"{__version__}, {os.path.dirname(os.path.abspath(leaves.__file__))}"
    yield (
        "python",
        "ok",
        f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}",
    )
    yield "system", "ok", platform.platform()
    for package, module, purpose in PACKAGES:
        found = _version(package, module)
        yield package, "ok" if found else "missing", f"{found or 'pip install ' + package} ({purpose})"
    for package, module, extra, purpose in EXTRAS:
        found = _version(package, module)
        hint = how_to_install(extra)
        yield package, "ok" if found else "absent", f"{found or hint} ({purpose}; optional)"
    yield _java()
    yield from _capturing()
    yield wireshark_row()
    yield _confinement()
    yield from _leaves()
    yield from _definitions()
    yield from _configuration()


def _version(package: str, module: str) -> str | None:
    if find_spec(module) is None:
        return None
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def _java() -> Row:
    """The Java that Spark runs on."""
    from kdissect.spark.launch import bundled_java, find_java

    if program := find_java():
        return "java", "ok", f"{program} (for Spark)"
    if program := bundled_java():
        return "java", "ok", f"{program}, of kdissect[spark-local] (for Spark)"
    home = os.environ.get("JAVA_HOME")
    where = f"JAVA_HOME is {home}, which has no bin/java; " if home else ""
    hint = f"apt install openjdk-17-jre-headless, or {how_to_install('spark-local')}"
    return "java", "absent", f"{where}{hint} (for Spark, 17 or newer; optional)"


def _capturing() -> Iterator[Row]:
    """Whether packets can be captured here and now, and if not, the command to type."""
    from kdissect.live import libpcap

    if libpcap.is_available():
        yield "libpcap", "ok", f"{libpcap.version()} (any capture filter)"
    else:
        without = "only the capture filters tcp and tcp port N or M …"
        if sys.platform != "linux":
            without = "nothing is captured"
        yield "libpcap", "absent", f"{without}; {libpcap.install_hint()}"
    if sys.platform != "linux":
        yield _capturing_elsewhere()
        return
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except PermissionError:
        yield "capturing", "forbidden", f"permitted by: {line_without_root(arguments=('live', '-i', 'any'))}"
    except OSError as error:
        yield "capturing", "impossible", f"packet sockets: {error.strerror}"
    else:
        yield "capturing", "ok", "permitted"


def _confinement() -> Row:
    """What the decoding process can no longer do, found out by trying."""
    if sys.platform != "linux":
        return (
            "confinement",
            "absent",
            f"the decoding process can do all that you can do: {platform.system()}",
        )
    found, offered = in_force(), means() or "neither Landlock nor seccomp"
    if not found.lacking():
        done = "the decoding process cannot write other files, run programs or use the network"
        return "confinement", "ok", f"{done} ({offered})"
    state = "partly" if any(found) else "absent"
    return (
        "confinement",
        state,
        f"the decoding process can still {found.lacking()}: this system offers {offered}",
    )


def _capturing_elsewhere() -> Row:
    """The same on systems where libpcap captures, in the process that opens the interface."""
    from kdissect.live import libpcap
    from kdissect.live.adapters import adapters

    if not libpcap.is_available():
        return "capturing", "absent", libpcap.install_hint()
    doors = glob("/dev/bpf*")  # macOS
    is_shut = bool(doors) and not any(os.access(each, os.R_OK) for each in doors)
    if is_shut or (sys.platform == "win32" and not adapters()):
        return "capturing", "forbidden", way_out()
    details = (
        f"by libpcap, best effort: tested on Linux, not on {platform.system()}; no process gives up its "
        "privileges"
    )
    return "capturing", "untested", details


def _leaves() -> Iterator[Row]:
    compiled = [name for name in LEAVES if not (import_module(name).__file__ or "").endswith(".py")]
    if compiled:
        details = f"{len(compiled)} of {len(LEAVES)} hot modules are compiled ({PURE}=1 runs their sources)"
        yield "compiled", "ok", details
    else:
        details = f"pure Python, {_why_pure()}"
        yield "compiled", "no", details


def _why_pure() -> str:
    if leaves.is_pure():
        return f"because {PURE} is set"
    return "about ten times slower: there was no C compiler when kdissect was installed"


def _definitions() -> Iterator[Row]:
    releases = {release for key in apis.api_keys() for release in apis.api_summary(key).releases}
    newest = sorted(releases, key=lambda text: [int(part) for part in text.split(".")], reverse=True)
    details = (
        f"{len(apis.api_keys())} APIs, {len(apis.data_names())} other classes; Kafka {', '.join(newest)}"
    )
    yield "definitions", "ok", details
    own = str(package_folder())
    user = sum(
        not str(file).startswith(own) for _, file in (*library().apis.values(), *library().data.values())
    )
    folder = user_folder()
    for problem in library().check():
        yield "", "damaged", f"{problem.file}: {problem.reason}"
    yield "", "", f"{user} files of your own in {folder}" if user else f"none of your own in {folder}"


def _configuration() -> Iterator[Row]:
    path = config_path()
    if not path.exists():
        yield "configuration", "none", f"the file would be {path}"
    else:
        try:
            load_config(for_screens=True)
        except click.ClickException as error:
            yield "configuration", "wrong", error.format_message()
        else:
            yield "configuration", "ok", str(path)
    for name in sorted(os.environ):
        if name.startswith("KDISSECT_"):
            yield "environment", "set", f"{name}={os.environ[name]}" if is_public(name) else name
