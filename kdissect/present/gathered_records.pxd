cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between
from kdissect.protocol.json_text cimport JsonText
from kdissect.record.records cimport Columns
from kdissect.record.rows cimport Int64Rows

cdef Py_ssize_t _HEADER_COST

@cython.final
cdef class GatheredRecords:
    cdef public JsonText keys
    cdef public JsonText values
    cdef public JsonText header_names
    cdef public JsonText header_values
    cdef public Py_ssize_t count
    cdef public Py_ssize_t header_count
    cdef Int64Rows _numbers
    cdef Int64Rows _sizes

    cpdef numbers(self)
    cpdef header_sizes(self)
    @cython.locals(names=Py_ssize_t, values=Py_ssize_t)
    cpdef Py_ssize_t held(self) except -1
    cpdef clear(self)
    @cython.locals(
        data=bytes, step=Py_ssize_t, cursor=Cursor, to=Py_ssize_t, rows="long long*", mine="long long*", index=Py_ssize_t,
        at=Py_ssize_t,
    )
    cpdef add(self, Columns columns, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(to=Py_ssize_t, mine="long long*")
    cpdef add_one(self, int64_t offset, int64_t timestamp, bytes key, bytes value, headers)
    @cython.locals(
        data=bytes, count=Py_ssize_t, at=Py_ssize_t, sizes="long long*", _=Py_ssize_t, size=int64_t, start=Py_ssize_t,
        name=bytes,
    )
    cdef Py_ssize_t _add_headers(self, Cursor cursor) except -1
    @cython.locals(at=Py_ssize_t, sizes="long long*")
    cdef int _add_header(self, bytes name, bytes value) except -1

@cython.locals(at=Py_ssize_t)
cdef bint _is_ascii(const unsigned char* raw, Py_ssize_t start, Py_ssize_t end) noexcept
