cimport cython
from libc.stdint cimport int64_t
from kdissect.dissect cimport Journal
from kdissect.parts.packed cimport PackedNumbers
from kdissect.parts.ticks cimport Ticks
from kdissect.numbering cimport Numbering
from kdissect.model cimport Segment
from kdissect.session.briefs cimport Brief

cdef int64_t _BEFORE_ALL, _LINGER_NS
cdef int ACK, SYN

cdef class PartJournal(Journal):
    cdef public PackedNumbers steps
    cdef public list forgotten
    cdef public Ticks ticks
    cdef public list segments
    cdef public dict own_pairs
    cdef public bint is_tunnelled
    cdef public bint has_time_gone_back
    cdef public set tls
    cdef frozenset _going_on
    cdef frozenset _set_aside
    cdef set _other_pairs
    cdef int64_t _latest_ns

    @cython.locals(back_ns=int64_t)
    cpdef tick(self, int64_t packet, int64_t timestamp_ns)
    @cython.locals(ends=tuple, one=bytes, other=bytes)
    cpdef bint is_set_aside(self, Segment segment) except -1
    cpdef note_events(self, Py_ssize_t events)

cdef class SeamJournal(Journal):
    cdef public list forgotten

cdef class PartNumbering(Numbering):
    cdef public PackedNumbers first_packets
    cdef public PackedNumbers recognised

    @cython.locals(brief=Brief)
    cpdef exchange(self, begun)
