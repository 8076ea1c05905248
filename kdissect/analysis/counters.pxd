cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange

cdef object _DEEPEST

@cython.final
cdef class Grades:
    cdef public int64_t errors
    cdef public int64_t fatal
    cdef public int64_t routine

    cpdef add(self, error_class)
    @cython.locals(codes=list)
    cpdef add_codes(self, Exchange exchange)
    cpdef merge(self, Grades later)

@cython.final
cdef class Span:
    cdef int64_t _begin
    cdef int64_t _end
    cdef int64_t _first
    cdef bint _is_empty
    cdef int64_t _last

    cpdef add(self, int64_t ns, int64_t exchange)
    cpdef begin(self, Exchange exchange)
    cpdef cover(self, Exchange exchange)
    cpdef merge(self, Span later)

@cython.final
cdef class Depth:
    cdef public int64_t count
    cdef public int64_t total
    cdef public int64_t deepest
    cdef public object first_response_ns
    cdef public Py_ssize_t limit
    cdef bint _has_latest
    cdef int64_t _latest_ns
    cdef public list _waiting
    cdef public list _head

    cpdef add(self, int64_t request_ns, int64_t response_ns, bint counts=*)
    cpdef merge(self, Depth later)
    @cython.locals(before=cython.bint)
    cdef _count(self, int64_t request_ns, int64_t depth)
    cdef _drop(self, int64_t now_ns)
