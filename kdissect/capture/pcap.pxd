cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Packet

@cython.locals(
    raw="const unsigned char*", size=Py_ssize_t, header_bytes=Py_ssize_t, scale=int64_t, limit=int64_t, start=Py_ssize_t, end=Py_ssize_t,
    is_little=cython.bint, seconds=int64_t, fraction=int64_t, captured=Py_ssize_t, wire_length=int64_t, packet=Packet,
)
cdef Py_ssize_t _ordinary(
    bytes buffer, Py_ssize_t at, list items, int64_t number, tuple form, int link_type, int64_t interface
) except -1
@cython.locals(high=int64_t)
cdef int64_t _little(const unsigned char* raw, Py_ssize_t at) noexcept
@cython.locals(high=int64_t)
cdef int64_t _big(const unsigned char* raw, Py_ssize_t at) noexcept
