cimport cython
from libc.stdint cimport int64_t
from kdissect.tcp.packed cimport number, put

cdef Py_ssize_t _RECENT, _BYTES, _HEAD_BYTES
cdef int64_t _COPY_NS

@cython.final
cdef class Copies:
    cdef int64_t[16] _identities
    cdef public int64_t _latest_ns
    cdef public Py_ssize_t _oldest

    @cython.locals(numbers=bytearray, raw="unsigned char*", size=Py_ssize_t, at=Py_ssize_t)
    cpdef bytearray packed(self)
    cpdef remember(self, int64_t identity, int64_t timestamp_ns)
    @cython.locals(at=Py_ssize_t)
    cpdef bint has(self, int64_t identity, int64_t timestamp_ns) except -1

@cython.locals(made=Copies, raw="const unsigned char*", size=Py_ssize_t, at=Py_ssize_t)
cpdef Copies copies_of(bytearray numbers)
