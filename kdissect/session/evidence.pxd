cimport cython
from libc.stdint cimport int64_t
from kdissect.message cimport Request
from kdissect.protocol.layout cimport Layout, layout
from kdissect.protocol.survey cimport Survey, survey_at

cdef int _NO_HEAD, _STRANGE_API, _STRANGE_VERSION, _KNOWN
cdef Py_ssize_t _LONGEST_JUDGED, _MOST_JUDGED, _MOST_KNOWN
cdef dict _standings
cdef tuple _judged

@cython.locals(
    raw="const unsigned char*", left=int64_t, size=int64_t, end=int64_t, key=int64_t, version=int64_t, standing=cython.int,
    is_known=cython.bint,
)
cpdef tuple examine_request(data, Py_ssize_t position, limits=*)
@cython.locals(
    raw="const unsigned char*", left=Py_ssize_t, size=Py_ssize_t, length=Py_ssize_t, name=Py_ssize_t, body=Py_ssize_t,
    end=Py_ssize_t, key=cython.int, version=cython.int, known=Layout, seen=Survey,
)
cpdef bint begins_ordinary_request(bytes data, Py_ssize_t start, Py_ssize_t stop, limits=*) except -1
@cython.locals(value=int64_t, place=Py_ssize_t, following=int64_t)
cpdef int64_t number_at(data, Py_ssize_t at, Py_ssize_t count) except? -1
@cython.locals(value=int64_t, place=Py_ssize_t, following=int64_t)
cdef int64_t _number(const unsigned char* raw, Py_ssize_t at, Py_ssize_t count) noexcept
@cython.locals(both=int64_t)
cdef int _standing(int64_t key, int64_t version) except -1
@cython.locals(is_api=cython.bint)
cdef int _find_standing(key, version) except -1
cdef bint _may_be_newer(key, version) except -1
@cython.locals(raw="const unsigned char*", size=int64_t, key=int64_t, version=int64_t, standing=cython.int)
cpdef int look_at_head(data, Py_ssize_t position, limits) except -1
@cython.locals(raw="const unsigned char*", have=Py_ssize_t, length=int64_t, start=Py_ssize_t, client_id=bytes)
cdef _examine_header(data, Py_ssize_t position, int64_t size)
cdef bint _is_plain(const unsigned char* raw, Py_ssize_t at, Py_ssize_t stop) noexcept
@cython.locals(known=tuple, kept=dict)
cdef _judge_whole(int64_t key, bytes payload, limits)
@cython.locals(at=int64_t, is_flexible=cython.bint)
cdef bint _may_be_produce(data, Py_ssize_t position, int64_t size, version) except -1
cdef tuple _compact_length(data, int64_t at)
@cython.locals(request=Request, seen=Survey)
cdef _examine_whole(bytes payload, limits)
cdef bint _is_name(bytes client_id) except -1
cdef bint _is_distinct(request) except -1
cdef bint _is_utf8(bytes data) except -1
cdef bint _is_text(bytes data, bint is_cut=*) except -1
