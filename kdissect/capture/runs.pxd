cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Packet

cdef int _ENHANCED_PACKET, _BEFORE_DATA, _AROUND_DATA
cdef int64_t _HALF_WAY

cdef class PacketRun:
    cdef public bytes buffer
    cdef public Py_ssize_t at
    cdef public Py_ssize_t start
    cdef public Py_ssize_t stop
    cdef public int64_t number
    cdef public int64_t timestamp_ns
    cdef public int64_t wire_length
    cdef public Py_ssize_t data_start
    cdef public Py_ssize_t data_end
    cdef public bint _is_little
    cdef public Py_ssize_t _header_bytes
    cdef public int64_t _scale
    cdef public int link_type
    cdef public int64_t interface

    cpdef PacketRun copy(self)
    @cython.locals(
        raw="const unsigned char*", at=Py_ssize_t, scale=int64_t, seconds=int64_t, fraction=int64_t, captured=Py_ssize_t,
    )
    cpdef bint next(self) except -1
    @cython.locals(raw="const unsigned char*", packet=Packet)
    cpdef Packet packet(self)

cdef class BlockRun(PacketRun):
    cdef public int64_t _divisor
    cdef public int64_t _offset_ns

    cpdef PacketRun copy(self)
    @cython.locals(raw="const unsigned char*", at=Py_ssize_t, length=Py_ssize_t, captured=Py_ssize_t)
    cpdef bint next(self) except -1
    @cython.locals(packet=Packet, options=Py_ssize_t, end=Py_ssize_t)
    cpdef Packet packet(self)
    @cython.locals(raw="const unsigned char*", ticks=int64_t)
    cdef int64_t _time_ns(self, Py_ssize_t at) except? -1

@cython.locals(
    raw="const unsigned char*", size=Py_ssize_t, count=Py_ssize_t, header_bytes=Py_ssize_t, is_little=cython.bint,
    captured=Py_ssize_t, wire_length=int64_t, end=Py_ssize_t,
)
cpdef tuple end_of_run(bytes buffer, Py_ssize_t at, tuple form, int64_t limit)
@cython.locals(
    raw="const unsigned char*", size=Py_ssize_t, count=Py_ssize_t, kind=int64_t, length=int64_t, number=int64_t,
    high=int64_t, low=int64_t, captured=int64_t, end=Py_ssize_t, options=Py_ssize_t,
)
cpdef tuple end_of_blocks(
    bytes buffer, Py_ssize_t at, bint is_little, int64_t interface, int64_t latest, int64_t limit, int64_t block_limit
)
@cython.locals(code=cython.int, length=Py_ssize_t)
cdef bint _are_whole(const unsigned char* raw, Py_ssize_t at, Py_ssize_t end, bint is_little) noexcept
@cython.locals(high=int64_t)
cdef int64_t _little(const unsigned char* raw, Py_ssize_t at) noexcept
@cython.locals(high=int64_t)
cdef int64_t _big(const unsigned char* raw, Py_ssize_t at) noexcept
