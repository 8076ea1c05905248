cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between
from kdissect.protocol.json_text cimport JsonText
from kdissect.record.records cimport Columns, sum64

cdef dict _TEXTS

cdef int _write_bytes(JsonText out, bytes data, Py_ssize_t start, Py_ssize_t size, str form) except -1
@cython.locals(
    before=bytes, data=bytes, raw="const unsigned char*", at=Py_ssize_t, end=Py_ssize_t, count=int64_t, byte=int64_t,
    size=int64_t,
)
cdef int _write_headers(JsonText out, Cursor cursor, Py_ssize_t position, str form) except -1
cdef int _write_size(JsonText out, int64_t size) except -1
@cython.locals(first=Py_ssize_t, index=Py_ssize_t, text=bytes)
cpdef write_nested(JsonText out, Columns columns, str form, list controls=*, others=*)
@cython.locals(
    data=bytes, rows="long long*", step=Py_ssize_t, at=Py_ssize_t, index=Py_ssize_t, before=bytes, cursor=Cursor,
    is_plain=cython.bint,
)
cdef int _write_nested(
    JsonText out, Columns columns, Py_ssize_t first, Py_ssize_t last, str form, list controls
) except -1
@cython.locals(
    data=bytes, rows="long long*", step=Py_ssize_t, at=Py_ssize_t, index=Py_ssize_t, offset=int64_t, timestamp=int64_t,
    sequence=int64_t, is_assigned=cython.bint, base=int64_t, t0=bytes, t1=bytes, t2=bytes, t3=bytes, t4=bytes,
    t5=bytes, t6=bytes, t7=bytes, t8=bytes, t9=bytes, cursor=Cursor,
)
cpdef write_lines(
    JsonText out, Columns columns, Py_ssize_t first, Py_ssize_t last, tuple between, object assigned, str form,
    bint by_place=*
)
@cython.locals(text=bytes)
cdef bytes _text_of(str value)
cpdef write_value(JsonText out, value)
@cython.locals(before=bytes, value=str)
cpdef write_texts(JsonText out, list values)
@cython.locals(
    start=Py_ssize_t, parts=list, name=str, before=bytes, behind=bytes, is_optional=cython.bint, columns=tuple
)
cpdef tuple text_between(JsonText out, tuple groups, dict row)
