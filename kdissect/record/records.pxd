cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor
from kdissect.record.rows cimport Int64Rows

cdef int64_t _LEAST, _MOST

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Columns:
    cdef public bytes data
    cdef public Py_ssize_t count
    cdef public Int64Rows rows
    cdef public int64_t base_offset, base_sequence

    cpdef begin(self, bytes data, int64_t base_offset, int64_t base_sequence)
    cpdef object numbers(self)
    @cython.locals(
        data=bytes, rows="long long*", base_sequence=int64_t, at=Py_ssize_t, index=Py_ssize_t, offset=int64_t, timestamp=int64_t,
        key_at=int64_t, key_size=int64_t, value_at=int64_t, value_size=int64_t, headers_at=int64_t, out=list, step=Py_ssize_t,
    )
    cpdef list records(self)
    cpdef int64_t sequence(self, int64_t offset) except? -1
    @cython.locals(found=int64_t)
    cpdef int64_t assigned(self, int64_t offset, int64_t base) except? -1
    @cython.locals(rows="long long*", at=Py_ssize_t)
    cpdef add(self, int64_t offset, int64_t timestamp, int64_t key_at, int64_t key_size, int64_t value_at, int64_t value_size)
    @cython.locals(one=Columns, rows="long long*", at=Py_ssize_t)
    cpdef Columns only(self, Py_ssize_t index)
    @cython.locals(rows="long long*", at=Py_ssize_t, index=Py_ssize_t, step=Py_ssize_t, begin=int64_t, key_end=int64_t)
    cpdef Py_ssize_t within(self, Py_ssize_t start, Py_ssize_t most) except -1
    @cython.locals(rows="long long*", at=Py_ssize_t, index=Py_ssize_t, step=Py_ssize_t)
    cpdef shift(self, int64_t base)
    @cython.locals(rows="long long*", index=Py_ssize_t, step=Py_ssize_t, base=int64_t)
    cpdef bint is_consecutive(self) except -1
    @cython.locals(cursor=Cursor, count=int64_t)
    cpdef tuple headers(self, Py_ssize_t position)

@cython.locals(found=int64_t)
cpdef int64_t sum64(int64_t base, int64_t delta) noexcept
@cython.locals(size=int64_t)
cdef tuple _read_header(Cursor cursor)
