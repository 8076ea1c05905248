cimport cython
from libc.stdint cimport int64_t
cdef bint _is_record_header(bytes head) except -1
cdef bint _is_token(data, position, end) except -1
cdef bint _may_become_token(data, position, end) except -1
cdef bint _begins_token(data, position, end) except -1
@cython.locals(raw="const unsigned char*", high=int64_t, correlation_id=int64_t, opens=tuple)
cpdef plain_verdict(bytes data, Py_ssize_t start, int side)
