"""The data that the screens show, without the screens: nothing here needs Textual.

    capture ─► decoder (a separate process) ───► batches ─► index (columns) ─► filter, order, figures
                                           └───► spool (frames) ─► exchange

Separate processes decode, count, list records and answer questions (:mod:`~kdissect.feed.side_process`). The
index keeps a row for each exchange. Filtering, searching, counting and saving use both.
"""
