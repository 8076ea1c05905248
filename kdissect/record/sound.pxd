cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between
from kdissect.record.messages cimport Contents, message_crc
from kdissect.record.records cimport are_sound, has_value

cdef int64_t _HEADER_BYTES, _LEAST_0, _LEAST_1, NEWEST_CODEC, NEWEST_OF_MESSAGES, CODEC_BITS, CRC_START, SMALLEST_BATCH, LOG_OVERHEAD

@cython.locals(
    cursor=Cursor, most=int64_t, room=int64_t, batches=int64_t, position=Py_ssize_t, size=int64_t, crc=int64_t,
    attributes=int64_t, count=int64_t, used=int64_t, codec=int64_t, contents=Contents,
)
cpdef bint is_sound(bytes data, Py_ssize_t start, Py_ssize_t end, limits, bint unpacks=*) except -1
@cython.locals(data=bytes, magic=int64_t, codec=int64_t, size=int64_t)
cdef int64_t _sound_message(Cursor cursor, Contents contents, int64_t position, int64_t end, bint unpacks) except -2
@cython.locals(cursor=Cursor, position=int64_t, end=int64_t, size=int64_t)
cpdef bint are_plain(bytes data) except -1
@cython.locals(cursor=Cursor, position=int64_t, size=int64_t)
cpdef bint may_have_value(bytes data, bytes begin, limits) except -1
