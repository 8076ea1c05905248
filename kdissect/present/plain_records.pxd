cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns

cdef int _C, _S, _T
cdef dict _NAMES
cdef Py_ssize_t _MOST_HARMLESS
cdef list _HARMLESS

@cython.locals(columns=Columns)
cpdef Columns plain_columns(Batch batch, bint shows_secrets, is_metadata, bint takes_control=*, Columns into=*)
cpdef bint are_plain(Columns columns, is_metadata) except -1
@cython.locals(
    data=bytes, rows="long long*", step=Py_ssize_t, at=Py_ssize_t, index=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t,
    raw="const unsigned char*", cursor=Cursor,
)
cpdef bint may_hold_secrets(Columns columns) except -1
@cython.locals(
    raw="const unsigned char*", marks="const unsigned char*", rows="long long*", step=Py_ssize_t,
    at=Py_ssize_t, index=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t,
)
cpdef bint may_hold_types(Columns columns, bytes types) except -1
@cython.locals(
    data=bytes, raw="const unsigned char*", name=bytes, at=Py_ssize_t, end=Py_ssize_t, count=int64_t, byte=int64_t,
    size=int64_t,
)
cdef bint _has_secret_header(Cursor cursor) except -1
@cython.locals(known=bytes, word="const unsigned char*", at=Py_ssize_t)
cdef bint _is_harmless(const unsigned char* raw, Py_ssize_t start, Py_ssize_t size) except -1
