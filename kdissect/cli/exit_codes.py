"""How a command ends, as a number (``kdissect help`` lists them)."""

from __future__ import annotations

DONE, NOTHING_MATCHED, USAGE, UNREADABLE, FAULTS_SEEN = 0, 1, 2, 3, 4
NOT_PERMITTED, OTHER_SIDE_FAILED, INTERRUPTED = 5, 6, 130
