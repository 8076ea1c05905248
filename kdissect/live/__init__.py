"""Live capture: packets of an interface → a spool of pcapng files → the same reader as for all captures.

    devices      the interfaces of Linux; on Windows: adapters
    rates        … and how many packets a second they have
    bpf          a capture filter → the program that the kernel runs; compiled by libpcap if that is installed
    privileged   opens the sockets, passes them on, ends         (the only part with a privilege)
    ring         a socket → blocks of packets
    external     tcpdump, dumpcap, ssh, a pipe → blocks of packets
    handle       libpcap → blocks of packets, on systems without a ring
    opening      chosen interfaces → objects that open them in the capture process
    capturing    the capture process: blocks → spool → disk, and its status
    waiting      how it waits for packets
    spool        blocks of packets → files, each valid at any time
    room         how much of its disk the spool may take, and which of its files may be removed
    journal      the files by which that process and its readers communicate
    following    the spool, or files that others write → packets, as they arrive
    session      starts the capture process and reads its status
    triggers     packets around the moments of interest → files
    metrics      exchanges and status → Prometheus
    silence      the message while no Kafka traffic arrives

The decoder reads the spool. It may fall behind, or die, and no packet is lost while there is room for the
files that wait. Packets lost after that are counted, and reported with the time of the first and the last.
"""
