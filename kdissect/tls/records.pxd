cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Chunk

cdef int _HEADER_BYTES, _LARGEST_TYPE, _LEAST_TYPE, _LONGEST_FRAGMENT
cdef int64_t _PART_BYTES

@cython.final
cdef class RecordReader:
    cdef public int64_t _cut_at
    cdef public int64_t _defects
    cdef public int64_t _have
    cdef public object _lost
    cdef public int64_t _need
    cdef public int64_t _offset
    cdef public list _parts
    cdef public int64_t _skip

    cdef int64_t _held(self) except -1
    cpdef bint is_empty(self) except -1
    @cython.locals(at=Py_ssize_t, end=Py_ssize_t, raw="const unsigned char*", size=Py_ssize_t, taken=int64_t)
    cpdef Py_ssize_t skip(self, bytes data, Py_ssize_t start, Py_ssize_t length, int least_type) except -1
    cpdef skip_held(self, int least_type)
    @cython.locals(chunk=Chunk, taken=int64_t, out=list)
    cpdef feed(self, piece)
    @cython.locals(
        parts=list, base=int64_t, data=bytes, at=Py_ssize_t, index=Py_ssize_t, index_end=Py_ssize_t, size=Py_ssize_t,
        body=Py_ssize_t, end=Py_ssize_t, length=Py_ssize_t, header=bytes, last=Chunk, first=Py_ssize_t, used=list,
        part=Chunk, packets=tuple,
    )
    cdef _cut(self, list out)
    @cython.locals(part=Chunk, left=Py_ssize_t, cut=Py_ssize_t)
    cdef _keep(self, Py_ssize_t at, Py_ssize_t index, Py_ssize_t index_end)

@cython.locals(raw="const unsigned char*")
cpdef Py_ssize_t length_at(bytes data, Py_ssize_t at) except -2
