cimport cython
from libc.stdint cimport int64_t
from kdissect.tcp.packed cimport number, put

cdef Py_ssize_t _RECENT, _BYTES, _HEAD_BYTES, _FEWEST
cdef int64_t _COPY_NS, _NEAR, _FARTHEST

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
    @cython.locals(
        newest=int64_t, at=Py_ssize_t, seen=Py_ssize_t, latest=int64_t, ahead=int64_t, behind=int64_t,
    )
    cdef bint _is_behind(self, int64_t sent) except -1

@cython.locals(made=Copies, raw="const unsigned char*", size=Py_ssize_t, at=Py_ssize_t)
cpdef Copies copies_of(bytearray numbers)
