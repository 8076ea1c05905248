cimport cython
from libc.stdint cimport int64_t

cdef Py_ssize_t _HEADER_BYTES, _ENHANCED_BYTES, _SIMPLE_BYTES
cdef int64_t _SIMPLE, _ENHANCED

@cython.locals(raw="const unsigned char*", last=Py_ssize_t, count=int64_t, captured=int64_t, wire=int64_t, end=int64_t)
cpdef tuple walk_pcap(
    bytes window, int64_t at, int64_t goal, int64_t size, bint is_little, int64_t limit, int64_t most
)
@cython.locals(
    raw="const unsigned char*", last=Py_ssize_t, count=int64_t, kind=int64_t, length=int64_t, end=int64_t, least=int64_t,
)
cpdef tuple walk_pcapng(
    bytes window, int64_t at, int64_t goal, int64_t size, bint is_little, int64_t limit, int64_t most
)
@cython.locals(high=int64_t)
cdef int64_t _number(const unsigned char* raw, Py_ssize_t at, bint is_little) noexcept
