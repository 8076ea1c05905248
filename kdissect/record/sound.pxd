cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between
from kdissect.record.messages cimport message_crc
from kdissect.record.scan cimport are_sound, has_value

cdef int64_t _HEADER_BYTES, _LEAST_0, _LEAST_1, NEWEST_CODEC, NEWEST_OF_MESSAGES, CODEC_BITS, CRC_START, SMALLEST_BATCH, LOG_OVERHEAD, _SHORT
cdef object _checksum

@cython.locals(
    raw="const unsigned char*", cursor=Cursor, most=int64_t, room=int64_t, batches=int64_t, position=Py_ssize_t,
    size=int64_t, crc=int64_t, checked=Py_ssize_t, count=int64_t, used=int64_t, codec=cython.int,
)
cpdef bint is_sound(
    bytes data, Py_ssize_t start, Py_ssize_t end, limits, bint unpacks=*, bint may_end_early=*
) except -1
@cython.locals(raw="const unsigned char*", left=Py_ssize_t, size=int64_t, magic=cython.int, codec=cython.int)
cdef bint _is_cut(bytes data, Py_ssize_t position, Py_ssize_t end, bint unpacks) except -1
@cython.locals(
    raw="const unsigned char*", magic=cython.int, codec=cython.int, stop=int64_t, at=int64_t, length=int64_t,
)
cdef bint _is_sound_message(bytes data, int64_t position, int64_t size, int64_t end, bint unpacks) except -1
@cython.locals(high=int64_t)
cdef int64_t _int32(const unsigned char* raw, int64_t at) noexcept
@cython.locals(high=int64_t)
cdef int64_t _uint32(const unsigned char* raw, int64_t at) noexcept
@cython.locals(raw="const unsigned char*", position=Py_ssize_t, size=int64_t)
cpdef bint are_plain(bytes data, Py_ssize_t start=*, Py_ssize_t end=*) except -1
@cython.locals(raw="const unsigned char*", cursor=Cursor, position=Py_ssize_t, size=int64_t)
cpdef bint may_have_value(bytes data, Py_ssize_t start, Py_ssize_t end, bytes begin, limits) except -1
