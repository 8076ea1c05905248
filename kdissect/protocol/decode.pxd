cimport cython
from libc.stdint cimport int64_t, uint64_t
from kdissect.protocol.cursor cimport Cursor

cdef int ARRAY, BOOLEAN, COMPACT_ARRAY, COMPACT_BYTES, COMPACT_RECORDS, COMPACT_STRING, INT8, INT16, INT32
cdef int INT64, NULLABLE_STRUCT, STRING, STRUCT, UINT16, UINT32, UUID
cdef int64_t _ELEMENTS

@cython.locals(values=dict)
cpdef dict decode(object struct, Cursor cursor, dict into=*)
cpdef object read_fixed(Cursor cursor, int opcode)
@cython.locals(opcode=cython.int, name=str, fields=tuple)
cdef _read_struct(tuple form, Cursor cursor, dict into)
@cython.locals(child=dict, items=list, count=int64_t)
cdef _read_compound(Cursor cursor, int opcode, str name, object argument, dict into)
@cython.locals(item=dict, _=int64_t)
cpdef read_elements(Cursor cursor, int element, object inner, int64_t count, list items)
@cython.locals(
    count=int64_t, _=int64_t, opcode=cython.int, outer_end=Py_ssize_t, start=Py_ssize_t,
    size=int64_t, previous=int64_t, tag=int64_t,
)
cdef _read_tagged(tuple tags, Cursor cursor, dict into)
@cython.locals(length=int64_t)
cpdef object read_variable(Cursor cursor, int opcode, bint nullable)
@cython.locals(start=Py_ssize_t, length=int64_t, left=Py_ssize_t, offset=Py_ssize_t)
cpdef int64_t read_size(Cursor cursor, int opcode, bint nullable) except? -2
cpdef object find_tag(tuple tags, int64_t tag)
@cython.locals(start=Py_ssize_t, count=int64_t, granted=int64_t, most=int64_t)
cpdef int64_t read_count(Cursor cursor, int opcode, bint nullable, int64_t least) except? -2
@cython.locals(start=Py_ssize_t, value=cython.int)
cpdef bint read_presence(Cursor cursor, int opcode) except -1
@cython.locals(start=Py_ssize_t, count=int64_t, granted=int64_t)
cpdef int64_t read_tag_count(Cursor cursor) except -1
