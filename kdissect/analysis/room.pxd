cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class _Common:
    cdef public int64_t left
    cdef public int64_t open_bytes
    cdef public int64_t open_things
    cdef public int64_t whole

    @cython.locals(more=int64_t)
    cpdef begin(self, int64_t held)

@cython.final
cdef class Room:
    cdef int64_t _before
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
    cpdef replace(self, Room other, int64_t most)
    cpdef settle(self, Room other)
    cpdef seal(self)
    cpdef _leave(self)
    cpdef int64_t _growth(self) except -1
    cpdef bint _is_crowded(self) except -1
    cpdef int64_t _lack(self) except -1
    @cython.locals(beyond=int64_t)
    cpdef int64_t _keeps(self, int64_t less) except? -1
    cpdef _begin(self, int64_t held)
    cpdef _move(self, int64_t own, int64_t most, _Common common)
    cpdef _set_open(self, bint is_open)
