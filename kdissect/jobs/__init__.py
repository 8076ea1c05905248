"""Several processes for one capture.

One process reads packets, puts bytes in order and pairs messages. So it alone gives numbers and names, and
keeps the limits that count over all connections. The rest is shared: decoding bodies, checking and unpacking
records, writing rows, counting.

The events are cut into batches (:mod:`kdissect.jobs.batches`). For each batch a process is forked
(:mod:`kdissect.jobs.process`) that does it and ends (:mod:`kdissect.jobs.serving`). A forked process has the
events themselves, with all that they refer to, as they were at the cut. So nothing is sent there, and nothing
about the state of a connection is guessed. What comes back are rows, columns or counts. They are put together
in the order of the batches (:mod:`kdissect.jobs.workers`), so the output is that of one process.
"""
