cimport cython
from libc.stdint cimport int64_t
from kdissect.session.evidence cimport look_at_head, number_at

cdef int64_t _ALL_IDS, _HALF, _LONGEST_CLIENT_ID, _LONGEST_REQUEST_HEAD, _HEADER_BYTES, _RESPONSE_HEAD, _MORE, _NO_FRAME
cdef int _NO_HEAD, _STRANGE_API
cdef Py_ssize_t _MOST_PENDING

@cython.final
cdef class _FrameTrack:
    cdef public bint is_fresh
    cdef public bint is_lost
    cdef public bint is_sure
    cdef public int64_t left
    cdef public bytes head

@cython.final
cdef class Chain:
    cdef public object _limits
    cdef public _FrameTrack _asked
    cdef public _FrameTrack _answered
    cdef public dict _pending
    cdef public bint _is_broken
    cdef public bint _has_last
    cdef public int64_t _last
    cdef public int64_t _requests
    cdef public int64_t _strange
    cdef public int64_t pairs
    cdef public bytes client_id

    cpdef bint is_enough(self, int port, bint is_doubtful) except -1
    @cython.locals(track=_FrameTrack, is_first=cython.bint, was_lost=cython.bint)
    cpdef feed(self, bint asks, piece, bint opened)
    @cython.locals(asks=cython.bint, longest=int64_t, position=int64_t, passed=int64_t, had=int64_t, head=bytes, size=int64_t)
    cdef _walk(self, _FrameTrack track, bytes data)
    @cython.locals(length=int64_t, standing=cython.int, known=bytes, last=int64_t, correlation_id=int64_t)
    cdef int64_t _read_request(self, bytes data) except? -3
    @cython.locals(size=int64_t, correlation_id=int64_t)
    cdef int64_t _read_response(self, bytes data) except? -3
    cdef _lose(self, _FrameTrack track)
    cdef _reset_counts(self)
