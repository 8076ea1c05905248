"""Live capture: packets of an interface → a spool of pcapng files → the reader of all captures.

    devices      what there is to capture from; on Windows: adapters
    rates        … and what goes on there
    bpf          a capture filter → the program that the kernel runs; libpcap compiles it where it is there
    privileged   opens the sockets, gives them away, ends        (the only part with a privilege)
    ring         a socket → blocks of packets
    external     tcpdump, dumpcap, ssh, a pipe → blocks of packets
    handle       libpcap → blocks of packets, where there is no ring
    opening      interfaces that are wanted → what opens them, in the capture process
    capturing    the capture process: blocks → spool → disk, and its status
    waiting      how it waits for packets
    spool        blocks of packets → files, each whole at any time
    room         how much of its disk the spool may take, and which of its files may go
    journal      what that process and whoever follows it agree on
    following    the spool, or files that others write → packets, as they come
    session      what starts the capture process and hears from it
    triggers     packets around the moments that matter → files
    metrics      exchanges and status → Prometheus
    silence      what to say while nothing comes

The decoder reads the spool. It may fall behind, or die, and no packet is lost while there is room for what
waits. What is lost after that is counted, and told with its span.
"""
