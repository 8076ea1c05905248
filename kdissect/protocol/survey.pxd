cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.decode cimport find_tag, read_count, read_presence, read_size, read_tag_count

cdef int PASS, ERROR, ACKS, VARIABLE, TOPIC_ID, ARRAY, ONE, MAYBE, THROTTLE
cdef int NOTHING, A_TOPIC, A_GROUP, A_TRANSACTIONAL_ID
cdef int COMPACT_STRING, STRING, UUID, RECORDS
cdef str ZERO_UUID

@cython.freelist(64)
@cython.no_gc
@cython.final
cdef class Survey:
    cdef public int acks
    cdef public int error
    cdef public list mentions
    cdef public list records
    cdef public list groups
    cdef public list transactional_ids
    cdef public int throttle_ms

@cython.final
cdef class Route:
    cdef public bint is_flexible
    cdef public list steps
    cdef public tuple tags
    cdef public int64_t width

@cython.final
cdef class Step:
    cdef public int action
    cdef public Route inner
    cdef public int names
    cdef public int64_t least
    cdef public bint nullable
    cdef public Step of
    cdef public int opcode
    cdef public int64_t width

@cython.locals(found=Survey)
cpdef survey(Route way, Cursor cursor)
@cython.locals(step=Step)
cdef _follow(Route way, Cursor cursor, Survey found)
@cython.locals(action=cython.int, size=int64_t, start=int64_t, count=int64_t, _=int64_t, code=cython.int, name=str)
cdef _visit(Step step, Cursor cursor, Survey found)
cdef list _with(list names, str name)
@cython.locals(previous=int64_t, tag=int64_t, size=int64_t, end=Py_ssize_t, outer_end=Py_ssize_t)
cdef _pass_tags(tuple tags, Cursor cursor, Survey found)
