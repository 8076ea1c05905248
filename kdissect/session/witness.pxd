cimport cython
from libc.stdint cimport int64_t
from kdissect.message cimport Request
from kdissect.protocol.framing cimport read_size_prefix
from kdissect.session.evidence cimport examine_request
from kdissect.session.pending cimport Pending

cdef int64_t _SEARCH_EFFORT

@cython.final
cdef class FrameWitness:
    cdef public object _client_id
    cdef public object _client_text
    cdef public int64_t _effort
    cdef public object _known_correlation
    cdef public object _limits
    cdef public int64_t _most
    cdef public Pending _pending
    cdef public FrameWitness _turned

    cpdef refresh(self)
    cpdef learn(self, Request request)
    cpdef know(self, str client_id)
    @cython.locals(end=int64_t, size=int64_t)
    cdef object _begins_request(self, bytes data, Py_ssize_t position, bint at_segment_start)
    @cython.locals(left=Py_ssize_t, size=int64_t)
    cdef object _begins_response(self, bytes data, Py_ssize_t position, bint at_segment_start)
