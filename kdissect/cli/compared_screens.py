"""``kdissect diff`` on a terminal: the screen with both sides, and the screens of each capture."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kdissect.cli.config import load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.report_inputs import ComparedFile, kept_report
from kdissect.cli.screen_settings import in_lines, known_theme
from kdissect.cli.terminals import can_draw_screens, heed_terminals_without_colours
from kdissect.insight.difference import Difference
from kdissect.present.sanitise import sanitise
from kdissect.settings.screens import WENT_BACK
from kdissect.system.terminal import SIGNALLED, run_in_terminal, without_echo

if TYPE_CHECKING:
    from kdissect.tui.comparison import ShownOutcome

_OPTIONS = {"decode_as": "-d", "key_logs": "--keylog", "rsa_keys": "--rsa-key"}
"""Options that the screens of one capture accept, too."""


_STARTING = "opening the exchanges of {} …"
_TAKE_BACK_LINE = "\x1b[A\x1b[2K"
"""Clears the line above the cursor."""


def is_for_screens(given: Mapping[str, Any]) -> bool:
    """Whether the differences are shown on the screens: on a terminal, if no option needs the list."""
    asks = given["form"] or given["output"] or given["all_of_them"] or given["fail_on"] or given["quiet"]
    if asks or "-" in (given["before"], given["after"]):
        return False
    return all(each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr)) and can_draw_screens()


def show(sides: Sequence[ComparedFile], found: Sequence[Difference], given: Mapping[str, Any]) -> int:
    """Show the differences until the user quits; return the exit code."""
    mistakes: list[Wrong] = []
    config = load_config(for_screens=True, mistaken=mistakes.append)
    theme = known_theme(None, config, mistakes.append)

    from kdissect.tui.comparison import WORDS, ComparedCapture, Comparison

    heed_terminals_without_colours()
    paths = given["before"], given["after"]
    before, after = (
        ComparedCapture(
            name, side.report.context, _opener(f"{word} {name}", path, given), side.report.not_judged
        )
        for word, name, path, side in zip(WORDS, side_names(*paths), paths, sides, strict=True)
    )
    app = Comparison((before, after), found, theme, config.keymap, in_lines(mistakes))
    app.run()
    return app.return_code or DONE


def side_names(before: str, after: str) -> tuple[str, str]:
    """The names of two files on the screen: as many last parts of their paths as are needed to tell them
    apart."""
    parts = [os.path.normpath(path).split(os.sep) for path in (before, after)]
    for count in range(1, max(map(len, parts))):
        first, second = (os.sep.join(each[-count:]) for each in parts)
        if first != second:
            return first, second
    return before, after


def _opener(name: str, path: str, given: Mapping[str, Any]) -> Callable[[str], ShownOutcome] | None:
    return partial(_exchanges, name, path, given) if kept_report(path, {}) is None else None


def _exchanges(name: str, path: str, given: Mapping[str, Any], text: str) -> ShownOutcome:
    """Show the exchanges of a capture that match a filter, in another process."""
    from kdissect.tui.comparison import ShownOutcome

    shown = f"({given['filter']}) and ({text})" if given["filter"] else text
    options = [word for name, option in _OPTIONS.items() for value in given[name] for word in (option, value)]
    command = [sys.executable, "-m", "kdissect", "tui", "--fresh", "--compared-as", name]
    command += ["-Y", shown, *options, "-r", path]
    _announce_start(name)
    try:
        with without_echo():
            code = run_in_terminal(command)
    except OSError as error:
        return ShownOutcome(f"the screens cannot be opened: {error.strerror or error}")
    if code in (WENT_BACK, DONE):  # otherwise the reason is below the line
        sys.stdout.write(_TAKE_BACK_LINE)
        sys.stdout.flush()
    if code == WENT_BACK:
        return ShownOutcome()
    if code == DONE or code > SIGNALLED:
        return ShownOutcome(ends_with=code)
    return ShownOutcome(f"the exchanges of {name} cannot be shown: their screens ended with code {code}")


def _announce_start(name: str) -> None:
    """Write a line to the terminal. It is empty until the other screens start, which takes a second, or
    several on a busy machine."""
    # A character may take two cells, and only one line is cleared later.
    room = max(8, (shutil.get_terminal_size().columns - len(_STARTING)) // 2 - 1)
    sys.stdout.write(f"{_STARTING.format(sanitise(name, room))}\n")
    sys.stdout.flush()
