cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Segment
from kdissect.tcp.reassembly cimport Reassembler

cdef int RST

cdef class Duplex:
    cdef dict __dict__
    cdef public object _backlogs
    cdef public object _limit
    cdef public int64_t _queued_cost
    cdef public tuple endpoints
    cdef public object first_ns
    cdef public object held_bytes
    cdef public object last_ns
    cdef public object last_packet
    cdef public object packets
    cdef public bint reset
    cdef public tuple streams

    cpdef bint is_finished(self) except -1
    @cython.locals(
        flags=cython.int, side=cython.int, first=Reassembler, second=Reassembler, ours=Reassembler,
        theirs=Reassembler,
    )
    cpdef feed(self, Segment segment)
