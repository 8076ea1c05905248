cimport cython
from cpython.array cimport array
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between

cdef int64_t _LEAST, _MOST

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Columns:
    cdef public bytes data
    cdef public Py_ssize_t count
    cdef public object rows
    cdef public int64_t base_offset, base_sequence

    @cython.locals(
        data=bytes, rows=cython.longlong[::1], base_sequence=int64_t, at=Py_ssize_t, index=Py_ssize_t, offset=int64_t, timestamp=int64_t,
        key_at=int64_t, key_size=int64_t, value_at=int64_t, value_size=int64_t, headers_at=int64_t, out=list, step=Py_ssize_t,
    )
    cpdef list records(self)
    cpdef int64_t sequence(self, int64_t offset) except? -1
    @cython.locals(found=int64_t)
    cpdef int64_t assigned(self, int64_t offset, int64_t base) except? -1
    @cython.locals(rows=cython.longlong[::1], at=Py_ssize_t)
    cpdef add(self, int64_t offset, int64_t timestamp, int64_t key_at, int64_t key_size, int64_t value_at, int64_t value_size)
    @cython.locals(rows=array)
    cpdef set_only(self, int64_t offset, int64_t timestamp, int64_t key_at, int64_t key_size, int64_t value_at, int64_t value_size)
    @cython.locals(one=Columns, at=Py_ssize_t)
    cpdef Columns only(self, Py_ssize_t index)
    @cython.locals(rows=cython.longlong[::1], at=Py_ssize_t, index=Py_ssize_t, step=Py_ssize_t)
    cpdef shift(self, int64_t base)
    @cython.locals(rows=cython.longlong[::1], index=Py_ssize_t, step=Py_ssize_t, base=int64_t)
    cpdef bint is_consecutive(self) except -1
    @cython.locals(cursor=Cursor, count=int64_t)
    cpdef tuple headers(self, Py_ssize_t position)

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class _RecordParts:
    cdef int64_t headers, headers_at, key_at, key_size, offset_delta, timestamp_delta, value_at, value_size

@cython.locals(
    columns=Columns, cursor=Cursor, place=_RecordParts, raw="const unsigned char*", rows=cython.longlong[::1], at=Py_ssize_t,
    capacity=Py_ssize_t, room=int64_t, broken=int64_t, found=int64_t, first_position=Py_ssize_t,
    over_limit=cython.bint, is_appended=cython.bint, appended=int64_t, start=Py_ssize_t, byte=int64_t,
    size=int64_t, record_end=Py_ssize_t, least=int64_t, step=Py_ssize_t,
)
cpdef object read_records(
    bytes data, Py_ssize_t position, Py_ssize_t end, int64_t base_offset, int64_t base_timestamp,
    object append_timestamp, int64_t base_sequence, int64_t limit, bint keep=*
)
@cython.locals(least=int64_t, place=_RecordParts, position=Py_ssize_t, granted=int64_t, found=int64_t, size=int64_t)
cpdef int64_t are_sound(Cursor cursor, Py_ssize_t end, int64_t count, int64_t room) except? -2
@cython.locals(least=int64_t, place=_RecordParts, position=Py_ssize_t, size=int64_t, size_of_begin=Py_ssize_t, data=bytes)
cpdef bint has_value(Cursor cursor, Py_ssize_t end, bytes begin, int64_t room) except -1
@cython.locals(found=int64_t)
cpdef int64_t sum64(int64_t base, int64_t delta) noexcept
@cython.locals(rows=object)
cdef Py_ssize_t _grow(Columns columns, Py_ssize_t used) except -1
@cython.locals(raw="const unsigned char*", byte=int64_t, length=int64_t)
cdef _scan(Cursor cursor, _RecordParts place, Py_ssize_t position, Py_ssize_t end, int64_t room)
@cython.locals(count=int64_t, _=int64_t)
cdef int64_t _pass_headers(Cursor cursor, int64_t limit) except -1
@cython.locals(size=int64_t, start=Py_ssize_t, at=Py_ssize_t, raw="const unsigned char*")
cdef _pass_header(Cursor cursor)
@cython.locals(size=int64_t)
cdef tuple _read_header(Cursor cursor)
