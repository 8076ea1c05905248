"""Captures that can be sent to others: the same traffic, without names, addresses and contents.

    allowed      what is kept, and what becomes of everything else: the one table
    permutation  names and bytes → others of the same length, by a key
    addresses    IP addresses, their texts and names of hosts
    values       one value of a message, by its meaning
    logins       SASL tokens
    record_sets  record sets, whose keys and values become others or filler
    messages     a whole message
    packets      link, IP and TCP headers
    streams      what was made of the bytes of each connection, by their place in it
    scrubbing    the two readings: messages first, then packets
    search       what must not be found in the result

Everything starts from bytes of zero, and only what the table allows is written into them. So everything else
is left out.
"""
