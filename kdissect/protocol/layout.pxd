cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.survey cimport Route

@cython.final
cdef class Layout:
    cdef public tuple _asked
    cdef tuple _candidates
    cdef object _has_records
    cdef public int header_version
    cdef public bint is_known
    cdef public str name
    cdef public object struct
    cdef public bint teaches
    cdef public Route way

    cpdef bint has_records(self) except -1

cdef dict _requests, _responses

@cython.locals(known=dict, key=int64_t, found=Layout)
cpdef Layout layout(int64_t api_key, int64_t version, str kind)
