"""The command line.

    root        the list of commands
    commands/   one module or package each, imported when it runs, with what only it needs
    config  errors  exit_codes  output  interrupts  terminals      what a process needs
    inputs  tls_keys  reading  tally                               captures → events
    moments  spans  filters  contents  completing                  what options take
    formats  row_options  printers  listing  listed_rows           events → rows, lines, trees
    shown_packets  statistics_output  screen_settings              other outputs
    folding  jobs                                                  events → counts; several processes
    states  sides                                                  stored counts
    capturing                                                      interfaces → packets (live, tui, doctor)

Commands import the modules beside ``commands``, and not each other. stdout is data; everything else goes to
stderr, one line each. No traceback ever reaches the user.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kdissect.cli.exit_codes import DONE, INTERRUPTED, UNREADABLE, USAGE
from kdissect.collector import COLLECTOR_THRESHOLD
from kdissect.system import ENDING


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code."""
    if arguments is None:
        # The process ends with the command. At its end, Python would search all objects for cycles, three
        # times. That takes as long as many commands do.
        atexit.register(gc.freeze)
    try:
        with _sigterm_as_ctrl_c(), _cycles_looked_for_seldom(is_last=arguments is None):
            return _run(arguments)
    except KeyboardInterrupt:  # during an import, or while an error is printed
        return INTERRUPTED


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Make SIGTERM (on Windows Ctrl-Break) end a command as Ctrl-C does, unless the caller of this process
    ignores the signal."""
    ours = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _cycles_looked_for_seldom(is_last: bool) -> Iterator[None]:
    """Make the garbage collector run seldom while a command runs.

    :param is_last: whether the process ends afterwards. Then the collector examines nothing any more: with
        the old thresholds, the next few objects would start it at once.
    """
    before = gc.get_threshold()
    gc.set_threshold(COLLECTOR_THRESHOLD, 20, 20)
    try:
        yield
    finally:
        if is_last:
            gc.freeze()
        gc.set_threshold(*before)


def _run(arguments: Sequence[str] | None) -> int:
    _open_missing_streams()
    try:
        return _command(arguments)
    finally:
        _print_problems()


def _command(arguments: Sequence[str] | None) -> int:
    import click

    from kdissect.cli.errors import ClosedPipeError, StoppedError, Wrong, complain
    from kdissect.cli.root import root
    from kdissect.wording import defect

    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        code = root.main(given, prog_name="kdissect", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except click.ClickException as error:
        complain(error.format_message(), error if isinstance(error, click.UsageError) else None)
        for line in error.below if isinstance(error, Wrong) else ():
            print(f"  {line}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except (click.Abort, StoppedError, KeyboardInterrupt):
        return INTERRUPTED
    except (ClosedPipeError, BrokenPipeError):
        _give_up_stdout()
        return DONE
    except OSError as error:
        complain(f"{error.filename or 'standard output cannot be written'}: {error.strerror or error}")
        _give_up_stdout()
        return USAGE
    except Exception as error:
        if os.environ.get("KDISSECT_DEBUG"):
            raise
        complain(f"{defect(error)} (KDISSECT_DEBUG=1 shows more)")
        return UNREADABLE


def _print_problems() -> None:
    """Print damaged definition files of the user that this run met, one line each."""
    module = sys.modules.get("kdissect.protocol.library")
    if module is None:  # this run read no definition
        return
    from kdissect.cli.errors import complain

    library = module.library()
    for problem in library.problems:
        instead = "kdissect's own is used" if problem.replaced else "it is ignored"
        complain(
            f"{problem.file}: a damaged definition ({problem.reason}), {instead}:"
            " remove it, or run kdissect schema import again"
        )
    library.problems.clear()


def _open_missing_streams() -> None:
    """Replace each standard stream that the caller closed with one that leads nowhere. A closed stream is no
    reason to fail."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for good


def _give_up_stdout() -> None:
    """Redirect stdout to nowhere, because its reader has gone (``| head``) or the disk is full. Pending
    output is dropped, and Python does not complain of it when it ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # stdout is no file
