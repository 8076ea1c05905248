cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.decode cimport read_count, read_size
from kdissect.protocol.json_text cimport JsonText

cdef int INT8, INT16, INT32, INT64, UINT16, UINT32, BOOLEAN, UUID, STRING, ARRAY, STRUCT, COMPACT_STRING
cdef int COMPACT_RECORDS, COMPACT_ARRAY, NULLABLE_STRUCT, RECORDS
cdef bytes _METADATA, _METADATA_ID

cdef class Way
cdef class Step

@cython.final
cdef class Way:
    cdef public list steps
    cdef public bint is_flexible

@cython.final
cdef class Step:
    cdef public int opcode
    cdef public bytes before
    cdef public bytes size_before
    cdef public bint nullable
    cdef public bint is_topic
    cdef public int64_t least
    cdef public Way inner
    cdef public Step element

@cython.final
cdef class Walk:
    cdef public Cursor cursor
    cdef public JsonText out
    cdef public object records

    @cython.locals(cursor=Cursor)
    cpdef begin(self, bytes data, records)
    cpdef write(self, Way way)
    @cython.locals(out=JsonText, step=Step)
    cpdef fields(self, Way way)
    @cython.locals(out=JsonText, cursor=Cursor, opcode=cython.int, size=int64_t, start=Py_ssize_t, there=int64_t)
    cpdef value(self, Step step)
    cpdef inside(self, Step step)
    @cython.locals(cursor=Cursor, size=int64_t, start=Py_ssize_t, may_be=cython.bint)
    cpdef text(self, Step step)
    @cython.locals(out=JsonText, cursor=Cursor, size=int64_t, start=Py_ssize_t, raw="const unsigned char*")
    cpdef record_set(self, Step step)
    @cython.locals(out=JsonText, cursor=Cursor, count=int64_t, at=int64_t)
    cpdef array(self, Step step)
