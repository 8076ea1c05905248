"""``kdissect interfaces``: what can be captured from."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from kdissect.cli import DONE
from kdissect.cli.errors import Wrong
from kdissect.cli.output import TextOutput, open_output
from kdissect.present.tables import json_line
from kdissect.wording import how_to_install


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
    if sys.platform != "linux":
        from kdissect.live import libpcap

        if not libpcap.is_there():
            raise Wrong(f"interfaces are listed by scapy and libpcap here: {how_to_install('live')}")
        for name, description in libpcap.devices():
            yield name, "", None, description
        return
    from kdissect.live.devices import ANY, devices

    yield ANY, "up", None, "all of them at once"
    for each in devices():
        yield each.name, "up" if each.is_up else "down", each.address, "loopback" if each.is_loopback else ""
