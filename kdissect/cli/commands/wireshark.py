"""``kdissect wireshark``: installs kdissect in this user's folders of Wireshark, and removes it."""

from __future__ import annotations

import os
import subprocess

import click

from kdissect.cli.capturing import live_in_own_home
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE, NOTHING_MATCHED
from kdissect.cli.group import HelpfulGroup
from kdissect.cli.output import TextOutput, open_output
from kdissect.present.tables import json_line
from kdissect.wireshark.folders import Folders, Program, find_program, folders_of, program_text
from kdissect.wireshark.installing import (
    FOREIGN,
    INSTALLED,
    PLUGIN,
    PROGRAM,
    ForeignFileError,
    InstalledFile,
    install,
    places,
    state_of,
    uninstall,
)


@click.group(cls=HelpfulGroup)
def command() -> None:
    """kdissect inside Wireshark.

    A plug-in shows the findings and fields in comments that kdissect wrote. Interfaces such as kdissect-eth0
    capture with kdissect, and their packets have these comments from the start.
    """


@command.command("install")
def install_command() -> int:
    """Install the plug-in and the interfaces in this user's folders of Wireshark."""
    program, folders = _look()
    if subprocess.run([*PROGRAM, "--version"], capture_output=True, cwd="/", check=False).returncode:
        raise Wrong(f"{PROGRAM[0]} finds kdissect only in the current folder: install it with pip first")
    try:
        laid = install(folders)
    except ForeignFileError as error:
        raise Wrong(str(error)) from None
    except OSError as error:
        raise Wrong(f"{error.filename}: cannot be written: {error.strerror}") from None
    _print([(each, "laid") for each in laid] or [(each, INSTALLED) for each in places(folders)])
    if program is None:
        complain(
            "neither tshark nor Wireshark is found here: these are the folders of Wireshark 4.2 and newer"
        )
    return DONE


@command.command("uninstall")
def uninstall_command() -> int:
    """Remove the files that install wrote, and nothing else."""
    _, folders = _look()
    try:
        removed = uninstall(folders)
    except OSError as error:
        raise Wrong(f"{error.filename}: cannot be removed: {error.strerror}") from None
    _print([(each, "removed" if each in removed else state_of(each)) for each in places(folders)])
    for place in places(folders):
        if state_of(place) == FOREIGN:
            complain(f"{place.path} is not from kdissect, so it is not removed")
    return DONE


@command.command("status")
@click.option("-T", "form", type=click.Choice(("text", "ndjson")), default="text")
def status_command(form: str) -> int:
    """Say what is installed, and where. The exit code is 1 if a file is missing or different."""
    program, folders = _look()
    found = [(each, state_of(each)) for each in places(folders)]
    with open_output(None) as file:
        output = TextOutput(file)
        rows = [("wireshark", "absent" if program is None else "found", program_text(program))]
        rows += [(place.kind, state, str(place.path)) for place, state in found]
        for what, state, details in rows:
            if form == "ndjson":
                file.write(json_line({"what": what, "state": state, "details": details}))
            else:
                output.line(f"{what:<10} {state:<9} {details}")
    return DONE if all(state == INSTALLED for _, state in found) else NOTHING_MATCHED


def _look() -> tuple[Program | None, Folders]:
    live_in_own_home()  # sudo may have left another user's folder
    program = find_program()
    return program, folders_of(program)


def _print(told: list[tuple[InstalledFile, str]]) -> None:
    with open_output(None) as file:
        output = TextOutput(file)
        for place, word in told:
            output.line(f"{place.kind:<10} {word:<9} {os.fspath(place.path)}")
        if any(word == "laid" and place.kind == PLUGIN for place, word in told):
            output.line("Wireshark shows both when it is started again.")
