"""``kdissect interfaces``: the interfaces that can be captured from."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.output import TextOutput, open_output
from kdissect.present.tables import json_line


@click.command()
@click.option("-T", "form", type=click.Choice(("text", "ndjson")), default="text")
def command(form: str) -> int:
    """List the interfaces of this machine, for -i."""
    with open_output(None) as file:
        output = TextOutput(file)
        for name, state, address, description in _rows():
            if form == "ndjson":
                row = {"name": name, "state": state, "address": address, "description": description}
                file.write(json_line(row))
            else:
                output.line(f"{name:<16} {state:<5} {address or '-':<16} {description}".rstrip())
    return DONE


def _rows() -> Iterator[tuple[str, str, str | None, str]]:
    from kdissect.live import libpcap
    from kdissect.live.rates import interfaces

    if sys.platform != "linux" and not libpcap.is_available():
        raise Wrong(f"interfaces are listed by scapy and libpcap here: {libpcap.install_hint()}")
    for name, state, address, description, _ in interfaces():
        yield name, state, address, description
