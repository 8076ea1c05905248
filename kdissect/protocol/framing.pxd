cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Chunk, Frame

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

    @cython.locals(data=bytes, length=int64_t, chunk=Chunk)
    cpdef feed(self, piece, witness)
    @cython.locals(frame=Frame)
    cdef Frame _whole_frame(self, Chunk chunk)
    cdef _feed_chunk(self, Chunk chunk, witness, list out)
    cdef _cut_frames(self, witness, list out)
    @cython.locals(total=int64_t, length=int64_t, parts=list)
    cpdef _take_frame(self, int64_t size)
    cpdef _frame(self, list used, bytes payload, size)
    @cython.locals(data=bytes)
    cdef bytes _peek(self, Py_ssize_t count)
