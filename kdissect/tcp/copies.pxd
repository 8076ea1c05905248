cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class Copies:
    cdef public list _identities
    cdef public int64_t _latest_ns

    @cython.locals(known=list)
    cpdef remember(self, int64_t identity, int64_t timestamp_ns)
