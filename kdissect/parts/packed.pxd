cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Segment
from kdissect.tcp.packed cimport number, put

cdef Py_ssize_t _BYTES, _SEGMENT_BYTES, _LEAST_ROOM
cdef int64_t _NONE

@cython.final
cdef class PackedNumbers:
    cdef public bytearray raw
    cdef Py_ssize_t _room
    cdef Py_ssize_t _end

    cpdef Py_ssize_t count(self) noexcept
    cpdef int64_t at(self, Py_ssize_t place) noexcept
    @cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cpdef Py_ssize_t place_of(self, int64_t value, Py_ssize_t start=*) noexcept
    cpdef add(self, int64_t value)
    cpdef fill(self, int64_t value, Py_ssize_t count)

@cython.locals(
    places=dict, payloads=list, options=list, numbers=bytearray, raw="unsigned char*", at=Py_ssize_t, segment=Segment,
    payload=bytes, option=bytes,
)
cdef tuple _packed_segments(list segments)
@cython.locals(
    out=list, raw="const unsigned char*", data="const unsigned char*", more="const unsigned char*", at=Py_ssize_t,
    begin=Py_ssize_t, option=Py_ssize_t, end=Py_ssize_t, segment=Segment, ack=int64_t, size=Py_ssize_t,
)
cdef list _unpacked_segments(list ends, bytearray numbers, bytes payloads, bytes options)
@cython.locals(end=bytes, ends=list)
cdef tuple _packed_ends(list pairs)
@cython.locals(
    out=list, raw="const unsigned char*", data="const unsigned char*", at=Py_ssize_t, begin=Py_ssize_t, middle=Py_ssize_t,
    end=Py_ssize_t, count=Py_ssize_t,
)
cdef list _unpacked_ends(bytes sizes, bytes ends)
