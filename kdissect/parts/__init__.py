"""The parts of one capture: each is dissected alone, and a seam joins each to the parts before it.

    Part ─► dissect_part ─► Edge ─► Stitcher (the true dissector) ─► Seam ─► Dissected.events

A part has every byte of the connections that begin in it, because it has their SYN. It dissects them from
their first byte. It sets aside the segments of other connections, without reading them. These segments, and
the state of its own connections at its end, are its edge.

The stitcher has the true state of all connections at the seam. It dissects the segments that were set aside
and takes in the part's own connections. That gives the true state at the next seam. It returns its results
(numbers, names of topic ids, events) to the part, which then gives all events in their order.

So no boundary is guessed, and no state: a connection is dissected from its beginning, or with its true state.
Connections with TLS are set aside as well, because secrets may come anywhere in a capture. A part that finds
such a connection begins again. It then sets aside all connections to the same endpoint.

If a part cannot be dissected alone, the part is given up, and the stitcher dissects it. Parts that are given
up are counted.

A part is given up if

* it has packets that concern several connections: tunnels, fragments that wait;
* a limit over all connections may have been reached;
* a connection began between two ends that have an older connection in memory;
* the file has damage there.
"""
