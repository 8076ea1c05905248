"""The terminal screens.

What they show is in :mod:`kdissect.feed`, which needs no Textual. The screens hold no decoding. They show the
index, and read one exchange at a time from the spool when it is to be shown.
"""

from __future__ import annotations

import os

FRAMES_A_SECOND = 120
"""How often Textual draws at most, unless TEXTUAL_FPS says otherwise. A key that comes right after a frame
waits for the next but one: 33 ms at Textual's usual 60, which is longer than all the rest. What did not
change is not drawn."""

os.environ.setdefault("TEXTUAL_FPS", str(FRAMES_A_SECOND))  # Textual reads it when it is imported
