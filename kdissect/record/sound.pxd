cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor
from kdissect.record.records cimport are_sound

cdef int64_t _HEADER_BYTES, CODEC_BITS, CRC_START, SMALLEST_BATCH, LOG_OVERHEAD

@cython.locals(
    cursor=Cursor, most=int64_t, room=int64_t, batches=int64_t, position=Py_ssize_t, size=int64_t, crc=int64_t,
    attributes=int64_t, count=int64_t, used=int64_t,
)
cpdef bint is_sound(bytes data, Py_ssize_t start, Py_ssize_t end, limits) except -1
