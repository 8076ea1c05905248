"""Several processes for one capture.

One process reads packets, puts bytes in order and pairs messages: what it does fixes numbers, names and
limits, which count over all connections, and is the smaller part of the work. What exchanges then cost,
decoding bodies, checking and unpacking records and writing rows, is shared batch by batch
(:mod:`kdissect.jobs.batches`) with processes beside it (:mod:`kdissect.jobs.workers`; what goes on in them
is :mod:`kdissect.jobs.serving`). Rows come out in the order of the events, as one process would write them.
"""
