cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between
from kdissect.record.records cimport Columns, sum64
from kdissect.record.rows cimport Int64Rows

cdef int64_t _ROW, _SMALLEST

@cython.final
@cython.no_gc
@cython.freelist(8)
cdef class RecordsFound:
    cdef public Columns columns
    cdef public int64_t found
    cdef public int64_t broken
    cdef public str first_problem
    cdef public Py_ssize_t first_position
    cdef public Py_ssize_t end
    cdef public str stopped
    cdef public bint over_limit
    cdef public int64_t elements
    cdef public int64_t not_utf8

@cython.locals(
    columns=Columns, found=RecordsFound, cursor=Cursor, raw="const unsigned char*", rows="long long*", at=Py_ssize_t,
    room_for=Py_ssize_t, room=int64_t, broken=int64_t, records=int64_t, is_appended=cython.bint, appended=int64_t,
    start=Py_ssize_t, byte=int64_t, size=int64_t, record_end=Py_ssize_t, headers=int64_t,
)
cpdef RecordsFound read_records(
    bytes data, Py_ssize_t position, Py_ssize_t end, int64_t base_offset, int64_t base_timestamp,
    object append_timestamp, int64_t base_sequence, int64_t limit, bint keep=*, Columns into=*
)
@cython.locals(place=Int64Rows, position=Py_ssize_t, granted=int64_t, found=int64_t, size=int64_t)
cpdef int64_t are_sound(Cursor cursor, Py_ssize_t end, int64_t count, int64_t room) except? -2
@cython.locals(place=Int64Rows, rows="long long*", position=Py_ssize_t, size=int64_t, size_of_begin=Py_ssize_t, data=bytes)
cpdef bint has_value(Cursor cursor, Py_ssize_t end, bytes begin, int64_t room) except -1
@cython.locals(raw="const unsigned char*", byte=int64_t, length=int64_t, headers=int64_t)
cdef int64_t _scan(
    Cursor cursor, long long* rows, Py_ssize_t at, Py_ssize_t position, Py_ssize_t end, int64_t room
) except -1
@cython.locals(count=int64_t, _=int64_t)
cdef int64_t _pass_headers(Cursor cursor, int64_t limit) except -1
@cython.locals(size=int64_t, start=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, byte=int64_t, raw="const unsigned char*")
cdef _pass_header(Cursor cursor)
