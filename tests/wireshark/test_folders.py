"""Where Wireshark looks, by its own word and by its User's Guide."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.wireshark.folders import Folders, documented, find_program, parse_folders
from tests.tshark import requires_tshark

NEW = """Personal configuration:	/home/a/.config/wireshark
Personal Plugins:    	/home/a/.local/lib/wireshark/plugins/4.6
Personal Lua Plugins:	/home/a/.local/lib/wireshark/plugins
Personal Extcap path:	/home/a/.local/lib/wireshark/extcap
Global Extcap path:  	/usr/libexec/wireshark/extcap
"""
OLD = """Personal configuration:	/home/a/.config/wireshark
Personal Lua Plugins:	/home/a/.local/lib/wireshark/plugins
Extcap path:         	/usr/lib/x86_64-linux-gnu/wireshark/extcap
"""


@pytest.mark.parametrize(
    ("platform", "plugins", "extcap"),
    [
        ("linux", "/home/a/.local/lib/wireshark/plugins", "/home/a/.local/lib/wireshark/extcap"),
        ("darwin", "/home/a/.local/lib/wireshark/plugins", "/home/a/.local/lib/wireshark/extcap"),
        ("win32", "/roaming/Wireshark/plugins", "/roaming/Wireshark/extcap"),
    ],
)
def test_folders_are_those_of_the_users_guide(platform: str, plugins: str, extcap: str) -> None:
    found = documented(platform, {"APPDATA": "/roaming"}, "/home/a")
    assert found == Folders(Path(plugins), Path(extcap))


def test_what_wireshark_says_of_itself_counts() -> None:
    plugins = Path("/home/a/.local/lib/wireshark/plugins")
    assert parse_folders(NEW) == Folders(plugins, Path("/home/a/.local/lib/wireshark/extcap"))
    assert parse_folders(OLD) == Folders(plugins, Path("/home/a/.config/wireshark/extcap"))
    assert parse_folders("tshark: no such option\n") is None


@requires_tshark
def test_the_installed_tshark_is_found() -> None:
    program = find_program()
    assert program is not None
    assert program.folders is not None
    assert program.folders.plugins.name == "plugins"
    assert program.folders.extcap.name == "extcap"
