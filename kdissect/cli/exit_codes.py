"""The exit codes of commands (``kdissect help`` lists them)."""

from __future__ import annotations

import click

DONE, NOTHING_MATCHED, USAGE, UNREADABLE, FAULTS_SEEN = 0, 1, 2, 3, 4
NOT_PERMITTED, OTHER_SIDE_FAILED, INTERRUPTED = 5, 6, 130

STRICT = click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
