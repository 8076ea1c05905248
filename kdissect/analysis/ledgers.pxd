cimport cython
from libc.stdint cimport int64_t, uint64_t
from kdissect.analysis.room cimport Room
from kdissect.tcp.packed cimport number, put

cdef int64_t _NONE
cdef uint64_t _MASK
cdef Py_ssize_t _BYTES

@cython.final
cdef class Ledgers(dict):
    cdef Py_ssize_t _bits
    cdef int64_t _count
    cdef Py_ssize_t _head
    cdef int64_t _most_keys
    cdef int64_t _most_rows
    cdef object _pack
    cdef Room _room
    cdef bytearray _row
    cdef int64_t _row_bytes
    cdef int64_t _width
    cdef public int64_t left_out

    @cython.locals(ledgers=dict, room=Room)
    cpdef add_row(self, key, tuple row)
    @cython.locals(ledgers=dict, rows=int64_t, room=int64_t, kept=bytearray, given=bytes, at=int64_t)
    cpdef add_all(self, key, numbers)
    @cython.locals(
        latest="unsigned char*", raw="const unsigned char*", row="unsigned char*", end=Py_ssize_t, at=Py_ssize_t,
        column=Py_ssize_t, value=int64_t, step=uint64_t, left=uint64_t,
    )
    cdef _append(self, bytearray kept, bytes given, Py_ssize_t start)
    cpdef merge(self, Ledgers later)
    @cython.locals(kept=bytearray, at=Py_ssize_t, latest=bytearray, row=bytearray)
    cpdef numbers(self, key)
    @cython.locals(
        raw="const unsigned char*", end=Py_ssize_t, unknown=Py_ssize_t, before="unsigned char*",
        out="unsigned char*", column=Py_ssize_t, place=Py_ssize_t, told=uint64_t, shift=cython.int, group=uint64_t,
        low=uint64_t, step=uint64_t,
    )
    cdef Py_ssize_t _read(self, bytearray kept, Py_ssize_t at, bytearray latest, bytearray row) except -1

cpdef known(value)
