cimport cython
from libc.stdint cimport int64_t

cdef class Value:
    pass

@cython.no_gc
@cython.final
cdef class Packet(Value):
    cdef public int64_t number
    cdef public int64_t timestamp_ns
    cdef public int link_type
    cdef public bytes data
    cdef public int64_t wire_length
    cdef public int64_t interface
    cdef public tuple comments
    cdef public tuple options

@cython.no_gc
@cython.final
cdef class Segment(Value):
    cdef public int64_t packet
    cdef public int64_t timestamp_ns
    cdef public bytes source
    cdef public bytes destination
    cdef public int64_t seq
    cdef public object ack
    cdef public int flags
    cdef public bytes payload
    cdef public int64_t length
    cdef public int64_t identity
    cdef public int64_t network
    cdef public int window
    cdef public bytes options
    cdef public int64_t clock

@cython.no_gc
@cython.final
cdef class Chunk(Value):
    cdef public int64_t offset
    cdef public bytes data
    cdef public int64_t packet
    cdef public int64_t timestamp_ns
    cdef public tuple packets

@cython.no_gc
@cython.final
cdef class Frame(Value):
    cdef public object direction
    cdef public int64_t offset
    cdef public bytes payload
    cdef public int64_t size
    cdef public int64_t first_packet
    cdef public int64_t first_ns
    cdef public int64_t last_packet
    cdef public int64_t last_ns
    cdef public tuple packets
    cdef public bint searched
    cdef public object fault

cdef tuple _OCTETS
cdef Py_ssize_t _IPV4_ENDPOINT
@cython.locals(raw="const unsigned char*", part=tuple)
cpdef str endpoint_text(bytes endpoint)
@cython.locals(other=Packet)
cpdef Packet renumbered(Packet packet, int64_t number, int64_t interface)
