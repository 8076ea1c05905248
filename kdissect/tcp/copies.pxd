cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class Copies:
    cdef public list _identities
    cdef public object _latest_ns

    @cython.locals(known=list)
    cpdef remember(self, identity, timestamp_ns)
