cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef Py_ssize_t _MOST_UUIDS
cdef dict _uuids
cdef int64_t _ELEMENTS
@cython.locals(text=str)
cpdef str uuid_text(bytes data)

@cython.freelist(64)
@cython.no_gc
@cython.final
cdef class Cursor:
    cdef public bytes data
    cdef public object limits
    cdef public int64_t elements_left
    cdef public Py_ssize_t position
    cdef public Py_ssize_t end
    cdef public list notes

    cpdef Py_ssize_t remaining(self)
    @cython.locals(position=Py_ssize_t)
    cpdef Py_ssize_t take(self, Py_ssize_t count) except -1
    @cython.locals(at=Py_ssize_t, raw="const unsigned char*", byte=cython.int)
    cpdef int read_int8(self) except? -1
    @cython.locals(at=Py_ssize_t, raw="const unsigned char*")
    cpdef bint read_boolean(self) except -1
    @cython.locals(at=Py_ssize_t, raw="const unsigned char*", value=cython.int)
    cpdef int read_int16(self) except? -1
    @cython.locals(at=Py_ssize_t, raw="const unsigned char*")
    cpdef int read_uint16(self) except -1
    @cython.locals(at=Py_ssize_t, raw="const unsigned char*", high=int64_t)
    cpdef int64_t read_int32(self) except? -1
    @cython.locals(at=Py_ssize_t, raw="const unsigned char*", high=int64_t)
    cpdef int64_t read_uint32(self) except -1
    @cython.locals(high=int64_t)
    cpdef int64_t read_int64(self) except? -1
    cpdef double read_float64(self) except? -1
    @cython.locals(start=Py_ssize_t)
    cpdef str read_uuid(self)
    @cython.locals(start=Py_ssize_t, raw="const unsigned char*")
    cpdef bytes read_bytes(self, Py_ssize_t count)
    @cython.locals(start=Py_ssize_t, data=bytes, raw="const unsigned char*")
    cpdef str read_text(self, Py_ssize_t count)
    @cython.locals(raw="const unsigned char*", position=Py_ssize_t, end=Py_ssize_t, value=uint64_t, shift=cython.int, byte=uint64_t)
    cpdef int64_t read_unsigned_varint(self) except -1
    @cython.locals(raw="const unsigned char*", position=Py_ssize_t, end=Py_ssize_t, value=uint64_t, shift=cython.int, byte=uint64_t)
    cpdef uint64_t read_unsigned_varlong(self) except? 0
    @cython.locals(value=int64_t)
    cpdef int64_t read_varint(self) except? -1
    @cython.locals(value=uint64_t)
    cpdef int64_t read_varlong(self) except? -1

@cython.locals(cursor=Cursor)
cpdef Cursor cursor_at(bytes data, Py_ssize_t position, limits)
cpdef Cursor cursor_between(bytes data, Py_ssize_t position, Py_ssize_t end, limits=*)
