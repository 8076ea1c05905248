cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Frame
from kdissect.protocol.cursor cimport Cursor, cursor_at
from kdissect.protocol.header cimport RequestHeader, ResponseHeader, read_correlation_id, read_request_header, read_response_header
from kdissect.protocol.layout cimport Layout, layout
from kdissect.protocol.survey cimport Survey, survey_at

cdef int _API_VERSIONS
cdef Py_ssize_t _FIXED_BYTES

@cython.no_gc
cdef class Message:
    cdef public Frame frame
    cdef public object api_key
    cdef public object api_version
    cdef public object correlation_id
    cdef public object header_version
    cdef public Py_ssize_t body_start
    cdef public object limits
    cdef public tuple header_faults
    cdef public object _body
    cdef public bint _is_surveyed
    cdef public Layout _layout
    cdef public Survey _survey

    cpdef Layout layout(self)
    cpdef body_struct(self)
    cpdef decoded(self)
    cpdef forget_body(self)
    @cython.locals(known=Layout, payload=bytes)
    cpdef Survey survey(self)
    cpdef Layout _likeliest_layout(self)
    cpdef bint may_have_records(self) except -1
    cpdef _candidates(self, struct)
    cpdef _decode(self)

@cython.final
@cython.no_gc
cdef class Request(Message):
    cdef public object client_id

@cython.final
@cython.no_gc
cdef class Response(Message):
    pass

@cython.final
@cython.no_gc
cdef class Token(Message):
    cdef public object client_id
    cdef public object kind

@cython.locals(cursor=Cursor, request=Request, head=RequestHeader)
cpdef Request parse_request(Frame frame, limits=*)
@cython.locals(
    payload=bytes, raw="const unsigned char*", size=Py_ssize_t, length=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t,
    api_key=cython.int, api_version=cython.int, known=Layout, version=cython.int, high=int64_t, correlation_id=int64_t,
    request=Request,
)
cdef Request _plain_request(Frame frame, limits)
@cython.locals(cursor=Cursor, head=ResponseHeader, response=Response, known=Layout, payload=bytes)
cpdef Response parse_response(Frame frame, api_key, api_version, limits=*)
cpdef begin(Message message, Frame frame, limits, Py_ssize_t body_start)
