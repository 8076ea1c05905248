cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor

cdef int PASS, ERROR, ACKS, THROTTLE, TEXT, BYTES, RECORDS, TOPIC_ID, LIST, MAYBE, STRUCT, TAGS, PARTITION, OFFSET, SESSION, COORDINATOR_TYPE, RESOURCE_TYPE, RESOURCE_PATTERN, REPLICA, DIVERGES, APPENDED
cdef int COMPACT, NULLABLE, OPEN, A_TOPIC, A_GROUP, A_TRANSACTIONAL_ID, A_KEY, A_RESOURCE, LATER, BESIDE_ID, TELLS, TEACHES
cdef str RECORD_FIELD, OFFSET_FIELD
cdef int64_t _UNUSUAL, _SHORT, _LOW, _NO_VARINT, _PLAIN_BYTES
cdef int _PREFIXED
cdef dict _OF_RESOURCE
cdef int64_t _ELEMENTS, _IN_ARRAY, _TAGGED_FIELDS, _IDS, _LONGEST_NAME
cdef tuple _NO_NAME
cdef list _NO_MENTIONS, _NO_RECORDS, _id_bytes, _ids, _names
cdef bytes _ZERO

@cython.freelist(64)
@cython.no_gc
@cython.final
cdef class Survey:
    cdef public int acks
    cdef public int error
    cdef public list errors
    cdef public list mentions
    cdef public list records
    cdef public list taught
    cdef public list groups
    cdef public list transactional_ids
    cdef public list keys
    cdef public int coordinator_type
    cdef public int throttle_ms
    cdef public int session_id
    cdef public int64_t appended_ms
    cdef public bint has_tail
    cdef public bint redirects
    cdef public list places
    cdef public str topic
    cdef public str topic_id
    cdef public object partition
    cdef public int64_t _elements
    cdef public int64_t _most_in_array
    cdef public int64_t _most_tags

@cython.final
cdef class Route:
    cdef object _struct
    cdef bytes _places
    cdef public bytes program, tail

    cpdef bytes places(self)

@cython.locals(found=Survey, tail=bytes)
cpdef Survey survey_at(Route way, bytes data, Py_ssize_t start, Py_ssize_t end, limits)
cpdef list find_places(Route way, Cursor cursor)
@cython.locals(found=Survey, places=list, program=bytes)
cpdef list places_at(Route way, bytes data, Py_ssize_t start, Py_ssize_t end, limits)
@cython.locals(found=Survey)
cdef Survey _nothing(limits)
cdef bint _run(bytes code, bytes data, int64_t start, int64_t end, Survey found) except -1
@cython.locals(
    raw="const unsigned char*", program="const unsigned char*", step=cython.int, size=int64_t, form=cython.int, what=cython.int,
    least=int64_t, width=int64_t, length=int64_t, count=int64_t, id_at=int64_t, teaches=cython.bint, resource=cython.int, resource_type=cython.int, pending=str, is_there=cython.bint, is_plain=cython.bint,
    name=str, topic_id=str, text=str, topic=str, known_id=str, known=tuple, mention=tuple,
)
cdef int64_t _walk(
    bytes code, int64_t at, int64_t stop, bytes data, int64_t position, int64_t end, Survey found
) except -2
@cython.locals(
    raw="const unsigned char*", program="const unsigned char*", head=int64_t, count=int64_t, previous=int64_t, tag=int64_t,
    size=int64_t, known=int64_t, length=int64_t, reached=int64_t,
)
cdef int64_t _walk_tags(
    bytes code, int64_t at, int64_t stop, bytes data, int64_t position, int64_t end, Survey found
) except -2
@cython.locals(value=int64_t, shift=cython.int, byte=int64_t)
cdef int64_t _varint(const unsigned char* raw, int64_t position, int64_t end) noexcept
@cython.locals(value=cython.int)
cdef int _int16(const unsigned char* raw, int64_t at) noexcept
@cython.locals(high=int64_t)
cdef int64_t _int32(const unsigned char* raw, int64_t at) noexcept
cdef bint _is_ascii(const unsigned char* raw, int64_t at, int64_t size) noexcept
@cython.locals(raw="const unsigned char*", place=cython.int, known=bytes, topic_id=bytes, mention=tuple)
cdef tuple _id_at(bytes data, int64_t at)
@cython.locals(raw="const unsigned char*", place=cython.int, known=tuple, name=bytes, text=str)
cdef tuple _name_at(bytes data, int64_t at, int64_t size)
cdef _note(Survey found, str text, tuple mention, int what)
cdef list _with(list names, str name)
