cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Value
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.decode cimport read_tag_count
from kdissect.protocol.layout cimport Layout, layout

@cython.no_gc
@cython.final
cdef class RequestHeader(Value):
    cdef public int api_key
    cdef public int api_version
    cdef public object client_id
    cdef public int64_t correlation_id
    cdef public int version
    cdef public Layout layout

@cython.no_gc
@cython.final
cdef class ResponseHeader(Value):
    cdef public int64_t correlation_id
    cdef public int version

@cython.locals(
    api_key=cython.int, api_version=cython.int, correlation_id=int64_t, length=int64_t, before=Py_ssize_t,
    version=cython.int, known=Layout, head=RequestHeader,
)
cpdef RequestHeader read_request_header(Cursor cursor)
@cython.locals(correlation_id=int64_t, version=cython.int, head=ResponseHeader)
cpdef ResponseHeader read_response_header(Cursor cursor, Layout known)
@cython.locals(raw="const unsigned char*", high=int64_t)
cpdef int64_t read_correlation_id(bytes payload) except? -2
@cython.locals(_=int64_t)
cdef _pass_tags(Cursor cursor)
