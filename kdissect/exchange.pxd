cimport cython
from kdissect.message cimport Message

cdef class Exchange:
    cdef public object connection
    cdef public object client_endpoint
    cdef public object broker_endpoint
    cdef public Message request
    cdef public Message response
    cdef public object missing
    cdef public object inferred
    cdef public object number
    cdef public object recognised
    cdef public list session_faults
    cdef public object topic_names
    cdef public bint embedded
    cdef public bint is_encrypted
    cdef public tuple _faults
    cdef public dict _base_offsets

    @cython.locals(first=Message)
    cpdef bint may_teach(self) except -1
    @cython.locals(message=Message, out=list)
    cpdef taught_topics(self)
    @cython.locals(message=Message, found=list)
    cpdef list _topic_mentions(self)
