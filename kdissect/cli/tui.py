"""``kdissect tui``: captures on the screen."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

from kdissect.cli import DONE
from kdissect.cli.config import load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.read import ports_of
from kdissect.cli.reading import packets_of
from kdissect.present.nearest import nearest
from kdissect.present.options import Options

NEEDED = ("textual", "numpy")
"""What the screens need beyond kdissect itself."""


@click.command()
@click.argument("files", nargs=-1, metavar="FILE…")
@click.option("-r", "more_files", multiple=True, metavar="FILE", help="A capture, as tshark has it.")
@click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Take a port for Kafka's.")
@click.option("--theme", metavar="NAME", help="Colours: textual-dark, textual-light, nord, ansi-dark …")
@click.option("--show-secrets", is_flag=True, help="Passwords, tokens and keys as they were sent.")
def command(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    decode_as: tuple[str, ...],
    theme: str | None,
    show_secrets: bool,
) -> int:
    """Look through captures on the screen: the list of exchanges, each as a tree and as bytes.

    Several FILEs are one capture. Decoding goes on beside the screen; ? shows the keys. It needs
    kdissect[tui].
    """
    paths = (*more_files, *files)
    if not paths:
        raise click.UsageError("no capture is given: name a file", click.get_current_context())
    if "-" in paths:
        raise Wrong("the screens need the keyboard; write standard input to a file first")
    _require_screen()
    config = load_config()
    ports = config.ports | ports_of(decode_as)
    packets_of(paths, config.limits).close()

    from kdissect.tui.app import Kdissect
    from kdissect.tui.feed.decoder import Decoder, Source

    options = Options(show_secrets=show_secrets, embedded=True, limits=config.limits)
    decoder = Decoder(Source(paths, config.limits, ports, dict(config.topics)))
    try:
        app = Kdissect(decoder, options, time_form=config.time)
        if theme is not None:
            if theme not in app.available_themes:
                hint = (
                    nearest(theme, app.available_themes) or f"; try {', '.join(sorted(app.available_themes))}"
                )
                raise Wrong(f"--theme {theme}: there is no such theme{hint}")
            app.theme = theme
        app.run()
    finally:
        decoder.close()
    return app.return_code or DONE


def _require_screen() -> None:
    """See that there is something to draw on and with.

    :raises Wrong: there is not.
    """
    missing = [module for module in NEEDED if find_spec(module) is None]
    if missing:
        raise Wrong(f"the screens need {' and '.join(missing)}: pip install 'kdissect[tui]'")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise Wrong("the screens need a terminal; kdissect read prints to anything")
    if os.environ.get("TERM") in ("dumb", "unknown"):
        raise Wrong(f"the screens cannot draw on TERM={os.environ['TERM']}; kdissect read prints to anything")
