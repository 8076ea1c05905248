"""What the screen of ``kdissect diff`` calls the two files."""

from __future__ import annotations

import pytest

from kdissect.cli.compared_screens import side_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("old.pcapng", "new.pcapng"), ("old.pcapng", "new.pcapng")),
        (("a/old.pcapng", "b/new.pcapng"), ("old.pcapng", "new.pcapng")),
        (
            ("monday/capture.pcapng", "friday/capture.pcapng"),
            ("monday/capture.pcapng", "friday/capture.pcapng"),
        ),
        (("/x/monday/lab/c.pcap", "/y/friday/lab/c.pcap"), ("monday/lab/c.pcap", "friday/lab/c.pcap")),
        (("./c.pcap", "/data/c.pcap"), ("c.pcap", "data/c.pcap")),
        (("c.pcap", "c.pcap"), ("c.pcap", "c.pcap")),
    ],
)
def test_files_are_named_by_what_tells_them_apart(paths: tuple[str, str], names: tuple[str, str]) -> None:
    assert side_names(*paths) == names
