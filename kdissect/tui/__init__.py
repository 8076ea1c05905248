"""The terminal screens.

    capture ─► decoder (a process of its own) ─► batches ─► index (columns) ─► table
                                           └───► spool (frames) ─► exchange ─► tree and bytes

The screens hold no decoding. They show the index, which :mod:`~kdissect.tui.feed.decoder` fills. They read
one exchange at a time from the spool, when it is to be shown.
"""
