cimport cython
from libc.stdint cimport int64_t

cdef Py_ssize_t _RECENT

@cython.final
cdef class Copies:
    cdef public list _identities
    cdef public int64_t _latest_ns
    cdef public Py_ssize_t _oldest

    @cython.locals(known=list)
    cpdef remember(self, int64_t identity, int64_t timestamp_ns)
