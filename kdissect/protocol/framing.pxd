cimport cython
from libc.stdint cimport int64_t

cdef class Framer:
    cdef dict __dict__
    cdef public object direction
    cdef public object _limits
    cdef public list _parts
    cdef public int64_t _have
    cdef public object _size
    cdef public bint _searching
    cdef public int64_t _skip
    cdef public bint _found_by_search
    cdef public int64_t _cut_at

    @cython.locals(data=bytes, length=int64_t)
    cpdef feed(self, piece, witness)
    @cython.locals(data=bytes)
    cdef _whole_frame(self, chunk)
    cdef _feed_chunk(self, chunk, witness, list out)
    cdef _cut_frames(self, witness, list out)
    @cython.locals(data=bytes, left=int64_t, begin=int64_t, end=int64_t, size=int64_t, searched=cython.bint)
    cdef _cut_whole_frames(self, list out)
    @cython.locals(total=int64_t, length=int64_t, parts=list)
    cpdef _take_frame(self, int64_t size)
    cpdef _frame(self, list used, bytes payload, size)
    @cython.locals(data=bytes)
    cdef bytes _peek(self, Py_ssize_t count)
