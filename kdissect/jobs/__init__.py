"""Several processes for one capture.

One process reads packets, puts bytes in order and pairs messages. So it alone gives numbers and names, and
keeps the limits that count over all connections. This is the smaller part of the work.

The larger part is shared: decoding bodies, checking and unpacking records, writing rows. Batches of
exchanges (:mod:`kdissect.jobs.batches`) go to processes beside the first (:mod:`kdissect.jobs.workers`),
which do the work (:mod:`kdissect.jobs.serving`). Rows come out in the order of the events, as one process
would write them.
"""
