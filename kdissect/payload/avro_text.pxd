cimport cython
from libc.stdint cimport int64_t
from kdissect.payload.avro_values cimport AvroType, read_count, read_int, read_size, read_value, spend, too_deep
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.json_text cimport JsonText

cdef int _NULL, _BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES
cdef int _STRING, _RECORD, _ENUM, _ARRAY, _MAP, _UNION, _FIXED
cdef int _DEEPEST
cdef object _float64, _float32

@cython.locals(kind=cython.int, index=int64_t, types=list, size=int64_t)
cpdef write_value(JsonText out, AvroType avro, Cursor cursor, int depth=*)
@cython.locals(texts=list, types=list, at=Py_ssize_t)
cdef _record(JsonText out, AvroType avro, Cursor cursor, int depth)
@cython.locals(item=AvroType, before=bytes, left=int64_t, _=int64_t)
cdef _array(JsonText out, AvroType avro, Cursor cursor, int depth)
@cython.locals(item=AvroType, before=bytes, data=bytes, keys=set, key=bytes, left=int64_t, size=int64_t, start=Py_ssize_t, _=int64_t)
cdef _map(JsonText out, AvroType avro, Cursor cursor, int depth)
@cython.locals(texts=list, names=list)
cdef list _texts(AvroType avro)
