from kdissect.message cimport Request
from kdissect.session.pending cimport Pending

cdef class FrameWitness:
    cdef public object _client_id
    cdef public object _client_text
    cdef public object _effort
    cdef public object _known_correlation
    cdef public object _limits
    cdef public Pending _pending
    cdef public FrameWitness _turned

    cpdef refresh(self)
    cpdef learn(self, Request request)
