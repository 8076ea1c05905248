cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.room cimport Room

@cython.final
cdef class Ledgers(dict):
    cdef int64_t _count
    cdef int64_t _most_keys
    cdef int64_t _most_rows
    cdef object _pack
    cdef Room _room
    cdef int64_t _row_bytes
    cdef int64_t _width
    cdef public int64_t left_out

    @cython.locals(ledgers=dict, room=Room)
    cpdef add_row(self, key, tuple row)
    @cython.locals(ledgers=dict, rows=int64_t, room=int64_t)
    cpdef add_all(self, key, numbers)
    cpdef merge(self, Ledgers later)

cpdef known(value)
