"""Live capture: packets of an interface → a spool of pcapng files → the reader of all captures.

    privileged   opens the sockets, gives them away, ends        (the only part with a privilege)
    ring         a socket → blocks of packets
    external     tcpdump, dumpcap, ssh, a pipe → blocks of packets
    capturing    the capture process: blocks → spool → disk
    following    the spool, or files that others write → packets, as they come
    session      what starts the capture process and hears from it

Whoever decodes reads the spool. It may fall behind, or die, without a packet being lost.
"""
