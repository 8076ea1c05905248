cimport cython
from libc.stdint cimport int64_t
from kdissect.dissect cimport Journal
from kdissect.parts.ticks cimport Ticks
from kdissect.telling cimport Numbering
from kdissect.model cimport Segment
from kdissect.session.briefs cimport Brief

cdef int64_t _BEFORE_ALL, _LINGER_NS
cdef int ACK, SYN

cdef class PartJournal(Journal):
    cdef public list steps
    cdef public list forgets
    cdef public Ticks ticks
    cdef public list segments
    cdef public dict own
    cdef public bint is_tunnelled
    cdef public bint went_back
    cdef public set tls
    cdef object _may_go_on
    cdef frozenset _set_aside
    cdef set _others
    cdef int64_t _latest_ns

    @cython.locals(back_ns=int64_t)
    cpdef tick(self, int64_t packet, int64_t timestamp_ns)
    @cython.locals(ends=tuple, one=bytes, other=bytes)
    cpdef bint takes(self, Segment segment) except -1
    cpdef gave(self, Py_ssize_t events)

cdef class SeamJournal(Journal):
    cdef public list forgets

cdef class PartNumbering(Numbering):
    cdef public list firsts
    cdef public list recognised

    @cython.locals(brief=Brief)
    cpdef exchange(self, begun)
