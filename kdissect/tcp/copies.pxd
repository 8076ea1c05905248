cimport cython
from libc.stdint cimport int64_t

cdef Py_ssize_t _RECENT
cdef int64_t _COPY_NS

@cython.final
cdef class Copies:
    cdef int64_t[16] _identities
    cdef public int64_t _latest_ns
    cdef public Py_ssize_t _oldest

    @cython.locals(size=Py_ssize_t)
    cpdef tuple _parts(self)
    cpdef remember(self, int64_t identity, int64_t timestamp_ns)
    @cython.locals(at=Py_ssize_t)
    cpdef bint has(self, int64_t identity, int64_t timestamp_ns) except -1
