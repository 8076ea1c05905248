cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Packet, Segment

cdef int ACK, FIN, RST, SYN, TIMESTAMP_HEADER, SLL, SLL2, _LEAST_BYTES, _LEAST_IPV6_BYTES, AUTHENTICATION, ETHERNET, IPV4, IPV6, TCP, _IPV4_BYTES, _IPV6_BYTES

@cython.final
cdef class SegmentReader:
    cdef public object _layers
    cdef public object _datagrams
    cdef public dict _pairs
    cdef public int64_t seq
    cdef public int64_t ack
    cdef public int window
    cdef public int64_t identity
    cdef public int64_t start
    cdef public int64_t length
    cdef public bint is_end
    cdef public int64_t clock
    cdef public Py_ssize_t ends_size

    @cython.locals(
        raw="const unsigned char*", size=Py_ssize_t, at=Py_ssize_t, told=Py_ssize_t, protocol=cython.int,
        is_fragment=cython.int, length=Py_ssize_t, ends=Py_ssize_t, identity=int64_t, header_bytes=Py_ssize_t,
        flags=cython.int, high=int64_t, has_room=bint,
    )
    cpdef Py_ssize_t look(self, bytes data, Py_ssize_t start, Py_ssize_t end, int link_type) except -2

    @cython.locals(
        link_type=cython.int, data=bytes, raw="const unsigned char*", size=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t,
        protocol=cython.int, upper=cython.int, is_fragment=cython.int, length=Py_ssize_t, identity=int64_t,
        ends=bytes, pair=tuple, header_bytes=Py_ssize_t, segment=Segment, flags=cython.int, ack=int64_t,
        source=bytes, destination=bytes, high=int64_t, has_room=bint,
    )
    cpdef feed(self, Packet packet)
    @cython.locals(raw="const unsigned char*", pair=tuple)
    cdef tuple _pair(self, bytes ends)
