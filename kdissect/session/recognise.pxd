cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Chunk
from kdissect.session.chain cimport Chain
from kdissect.session.evidence cimport begins_ordinary_request, examine_request

cdef int64_t PART_BYTES

@cython.final
cdef class _Side:
    cdef public bytes broken
    cdef public bytearray data
    cdef public int64_t examined
    cdef public bint is_loose
    cdef public bint is_decided
    cdef public bint opened
    cdef public int64_t dropped_bytes
    cdef public list starts
    cdef public bytes strange
    cdef public int64_t total
    cdef public bint whole

    cdef add(self, Chunk chunk)
    cdef int64_t held_bytes(self) except -1
    cdef cut(self)
    cpdef drop_data(self)
    cdef _clear(self)

@cython.final
cdef class Recogniser:
    cdef public tuple _chains
    cdef public object _doubt
    cdef public int64_t _effort
    cdef public object _limits
    cdef public tuple _ports
    cdef public tuple _sides
    cdef public object _strange_frame
    cdef public bint is_late

    @cython.locals(one=_Side, other=_Side)
    cpdef int64_t held_bytes(self) except -1
    @cython.locals(here=_Side, other=_Side)
    cpdef feed(self, int side, piece, bint opened)
    cpdef close(self)
    cdef _unknown(self)
    @cython.locals(here=_Side, asking=_Side, chain=Chain, client=cython.int)
    cdef _decide_by_exchanges(self, int side, piece)
    @cython.locals(one=Chain, other=Chain)
    cdef bint _may_decide_later(self) except -1
    @cython.locals(here=_Side, is_open=cython.bint)
    cdef _decide_late(self, int side, piece)
    cdef _greeting(self, _Side here)
    @cython.locals(here=_Side)
    cdef _decide(self, int side, enough)
    @cython.locals(end=int64_t, is_open=cython.bint)
    cdef _examine(self, _Side here)
    @cython.locals(end=int64_t)
    cdef _probe(self, _Side here, Py_ssize_t position)
    @cython.locals(here=_Side)
    cdef _kafka(self, int client, bint at_start, Py_ssize_t position)

cpdef at_once(bytes data, int side, limits=*)
@cython.locals(raw="const unsigned char*")
cpdef bint begins_tls(bytes data, Py_ssize_t start, Py_ssize_t end) except -1
cdef bint _is_record_header(bytes head) except -1
cdef bint _is_token(data, position, end) except -1
cdef bint _may_become_token(data, position, end) except -1
cdef bint _begins_token(data, position, end) except -1
@cython.locals(raw="const unsigned char*", high=int64_t, correlation_id=int64_t, opens=tuple)
cpdef plain_verdict(bytes data, Py_ssize_t start, int side)
