"""What the screens show, without a screen: nothing here needs Textual.

    capture ─► decoder (a process of its own) ─► batches ─► index (columns) ─► filter, order, figures
                                           └───► spool (frames) ─► exchange

Processes decode, count, list records and answer questions (:mod:`~kdissect.feed.beside`). The index keeps a
row for each exchange. The rest asks both: what is shown, what is found, what is counted, what is saved.
"""
