cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.decode cimport read_count, read_presence, read_size, read_tag_count
from kdissect.protocol.json_text cimport JsonText
from kdissect.protocol.json_plan cimport Step, Way

cdef int INT8, INT16, INT32, INT64, UINT16, UINT32, BOOLEAN, UUID, STRING, ARRAY, STRUCT, COMPACT_STRING
cdef int COMPACT_RECORDS, COMPACT_ARRAY, RECORDS, TAGGED_NULLABLE_STRUCT
cdef int TOPIC, POSITION, UNUSUAL, PIECE, COMPACT_PIECE, SECRET, MARKED
cdef bytes _HIDDEN, _UNKNOWN

@cython.final
cdef class Walk:
    cdef public Cursor cursor
    cdef public JsonText out
    cdef public object records
    cdef public object judge
    cdef bint _is_marked
    cdef bint _is_metadata
    cdef bint _has_written
    cdef int64_t _position

    @cython.locals(cursor=Cursor)
    cpdef begin(self, bytes data, Py_ssize_t start, Py_ssize_t end)
    cpdef write(self, Way way)
    @cython.locals(
        out=JsonText, step=Step, outer=cython.bint, begun=Py_ssize_t, anchors=list, count=int64_t, cursor=Cursor,
        raw="const unsigned char*",
    )
    cpdef fields(self, Way way)
    @cython.locals(
        out=JsonText, cursor=Cursor, step=Step, unknown=list, later=list, _=int64_t, previous=int64_t, tag=int64_t,
        size=int64_t, start=Py_ssize_t, stop=Py_ssize_t, end=Py_ssize_t, moved=Py_ssize_t,
    )
    cpdef tagged(self, Way way, int64_t count, Py_ssize_t begun, list anchors)
    @cython.locals(
        out=JsonText, cursor=Cursor, outer_end=Py_ssize_t, at=Py_ssize_t, place=Py_ssize_t, is_first=cython.bint,
        value_at=Py_ssize_t, size=Py_ssize_t,
    )
    cdef Py_ssize_t _tagged(
        self, Step step, Py_ssize_t end, Py_ssize_t begun, list anchors, Py_ssize_t moved
    ) except -1
    @cython.locals(out=JsonText, at=Py_ssize_t, start=Py_ssize_t, text=bytes)
    cdef bytes _unknown(self, Way way, int64_t size)
    @cython.locals(
        out=JsonText, cursor=Cursor, opcode=cython.int, size=int64_t, start=Py_ssize_t, at=Py_ssize_t,
        left=Py_ssize_t, raw="const unsigned char*",
    )
    cpdef value(self, Step step)
    @cython.locals(
        out=JsonText, cursor=Cursor, opcode=cython.int, size=Py_ssize_t, start=Py_ssize_t, begun=Py_ssize_t,
        written=Py_ssize_t, hides=cython.bint,
    )
    cpdef special(self, Step step, Step element)
    @cython.locals(out=JsonText, cursor=Cursor, size=int64_t, start=Py_ssize_t)
    cpdef record_set(self, Step step, int opcode, bint is_piece)
    @cython.locals(out=JsonText, cursor=Cursor, count=int64_t, at=int64_t)
    cpdef array(self, Step step)

@cython.locals(value=cython.int)
cdef int64_t _int16(const unsigned char* raw, Py_ssize_t at) noexcept
@cython.locals(step=Step)
cdef Step _find(list steps, int64_t tag)
