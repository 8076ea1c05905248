cimport cython
from libc.stdint cimport int64_t
from kdissect.tls.handshake cimport Messages
from kdissect.tls.records cimport RecordReader

@cython.final
cdef class Flow:
    cdef public int64_t _effort
    cdef public int64_t failures
    cdef public bint is_dead
    cdef public Messages messages
    cdef public int64_t offset
    cdef public int64_t opened
    cdef public object opener
    cdef public RecordReader reader
    cdef public int64_t seq
    cdef public int64_t slack
    cdef public object stage
    cdef public object unsaid

    cpdef open(self, record)
    cpdef open_fragment(self, bytes header, bytes fragment)
