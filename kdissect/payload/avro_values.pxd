cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor

cdef int _NULL, _BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES
cdef int _STRING, _RECORD, _ENUM, _ARRAY, _MAP, _UNION, _FIXED
cdef int _DEEPEST
cdef object _float32, _float64, _duration

@cython.final
cdef class AvroType:
    cdef public int kind
    cdef public str name
    cdef public list names
    cdef public list types
    cdef public AvroType item
    cdef public Py_ssize_t size
    cdef public str logical
    cdef public int scale

cpdef int64_t values_left(int64_t size) except -1
@cython.locals(kind=cython.int, index=int64_t, types=list, names=list, byte=cython.int, size=int64_t)
cpdef object read_value(AvroType avro, Cursor cursor, int depth=*)
@cython.locals(names=list, types=list, at=Py_ssize_t, out=dict)
cdef dict _record(AvroType avro, Cursor cursor, int depth)
@cython.locals(item=AvroType, out=list, left=int64_t, _=int64_t)
cdef list _array(AvroType avro, Cursor cursor, int depth)
@cython.locals(item=AvroType, out=dict, left=int64_t, _=int64_t)
cdef dict _map(AvroType avro, Cursor cursor, int depth)
@cython.locals(count=int64_t)
cpdef int64_t read_count(Cursor cursor) except -1
cpdef spend(Cursor cursor, int64_t count)
@cython.locals(value=int64_t)
cpdef int64_t read_int(Cursor cursor) except? -1
@cython.locals(size=int64_t)
cpdef int64_t read_size(Cursor cursor) except -1
@cython.locals(data=bytes)
cpdef object read_text(Cursor cursor, Py_ssize_t size)
cpdef object as_json(double number)
cpdef too_deep(Cursor cursor)
cpdef object shown_bytes(AvroType avro, bytes data)
