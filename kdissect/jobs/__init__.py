"""Several processes for one capture.

One process reads packets, puts bytes in order and pairs messages. So it alone gives numbers and names, and
keeps the limits that count over all connections. The other processes share the rest: decoding bodies,
checking and unpacking records, writing rows, counting.

The events are cut into batches (:mod:`kdissect.jobs.batches`). For each batch a process is forked
(:mod:`kdissect.jobs.process`), which does the batch and ends (:mod:`kdissect.jobs.serving`). A forked process
has a copy of the events, and of all objects that they refer to, as they were at the cut. So no event is sent
to it, and nothing about the state of a connection is guessed. It sends back rows, columns or counts. They are
put together in the order of the batches (:mod:`kdissect.jobs.workers`), so the output is that of one process.
"""
