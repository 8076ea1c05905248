cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class _Common:
    cdef public int64_t left

@cython.final
cdef class Room:
    cdef _Common _common
    cdef int64_t _held
    cdef int64_t _most
    cdef int64_t _own
    cdef public object limits
    cdef public bint refused

    @cython.locals(held=int64_t)
    cpdef bint takes(self, int64_t size) except -1
    @cython.locals(held=int64_t)
    cpdef bint has(self, int64_t size) except -1
    cpdef _move(self, int64_t own, int64_t most, _Common common)
