cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.room cimport Room

@cython.final
cdef class Rows(dict):
    cdef int64_t _most
    cdef object _new
    cdef Room _room
    cdef int64_t _row_bytes
    cdef public int64_t left_out

    @cython.locals(kept=dict)
    cpdef row(self, key)
    @cython.locals(kept=dict, room=Room)
    cdef _made(self, key)
    cpdef merge(self, Rows later)
