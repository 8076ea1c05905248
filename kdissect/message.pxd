cimport cython
from kdissect.protocol.cursor cimport Cursor

cdef class Message:
    cdef public object frame
    cdef public object api_key
    cdef public object api_version
    cdef public object correlation_id
    cdef public object header_version
    cdef public Py_ssize_t body_start
    cdef public object limits
    cdef public tuple header_faults
    cdef public object _body

    cpdef body_struct(self)
    cpdef decoded(self)
    cpdef forget_body(self)
    cpdef bint may_have_records(self) except -1
    cpdef _candidates(self, struct)
    cpdef _decode(self)

cdef class Request(Message):
    cdef public object client_id

cdef class Response(Message):
    pass

cdef class Token(Message):
    cdef public object client_id
    cdef public object kind

@cython.locals(cursor=Cursor, request=Request)
cpdef Request parse_request(frame, limits=*)
@cython.locals(cursor=Cursor)
cpdef Response parse_response(frame, api_key, api_version, limits=*)
