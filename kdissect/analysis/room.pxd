cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class _Common:
    cdef public int64_t left
    cdef public int64_t open_bytes
    cdef public int64_t open_things

@cython.final
cdef class Room:
    cdef _Common _common
    cdef int64_t _held
    cdef bint _is_open
    cdef int64_t _most
    cdef int64_t _own
    cdef public bint exceeded
    cdef public object limits
    cdef public bint refused

    @cython.locals(held=int64_t, common=_Common)
    cpdef bint takes(self, int64_t size) except -1
    cpdef bint refuses(self, bint is_beyond) except -1
    cpdef bint _exceeds(self) except -1
    cpdef _move(self, int64_t own, int64_t most, _Common common)
    cpdef _set_open(self, bint is_open)
