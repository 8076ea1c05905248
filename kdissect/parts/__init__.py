"""One capture in many hands: parts that are dissected alone, and a seam between each two.

    Part ─► dissect_part ─► Edge ─► Stitcher (the true dissector) ─► Seam ─► Dissected.events

A part knows all of the connections that begin in it: their SYN is there. It dissects them from their first
byte. What belongs to other connections it sets aside, unread: that is its edge, beside how its own
connections stand at its end. The stitcher has the true state of all connections at the seam. It dissects what
was set aside, takes in the part's own connections, and has the true state at the next seam. What it finds
(numbers, names of topic ids, events) goes back to the part, which then gives all events in their order.

So no boundary is guessed, and no state: a connection is dissected from its beginning, or with its true state.
Connections with TLS are set aside as well, because secrets may come anywhere in a capture. A part that finds
one begins anew. It then takes no connection that is opened to the same endpoint.

What a part cannot settle alone, for whatever reason, is dissected by the stitcher: the part is given up. That
is counted.

A part is given up where

* something came that concerns several connections: tunnels, fragments that wait;
* a limit over all connections may have been reached;
* a connection began between ends whose connection before it is still remembered;
* the file has damage there.
"""
