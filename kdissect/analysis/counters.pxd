cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.tcp.packed cimport number, put

cdef object _DEEPEST
cdef Py_ssize_t _BYTES

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
@cython.no_gc
cdef class Depth:
    cdef int64_t _first_response_ns
    cdef bint _has_latest
    cdef bint _has_response
    cdef bytes _head
    cdef int64_t _latest_ns
    cdef bytes _waiting
    cdef public int64_t count
    cdef public int64_t deepest
    cdef public Py_ssize_t limit
    cdef public int64_t total

    cpdef add(self, int64_t request_ns, int64_t response_ns, bint counts=*)
    cpdef merge(self, Depth later)
    @cython.locals(before=cython.bint)
    cdef _count(self, int64_t request_ns, int64_t depth)
    @cython.locals(place=Py_ssize_t)
    cdef _drop(self, int64_t now_ns)

@cython.locals(raw="const unsigned char*", low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
cdef Py_ssize_t _place(bytes packed, int64_t value) except -1
@cython.locals(place=Py_ssize_t)
cdef bytes _with(bytes packed, int64_t value)
@cython.locals(room=bytearray, raw="unsigned char*")
cdef bytes _bytes_of(int64_t value)
@cython.locals(room=bytearray, raw="unsigned char*", at=Py_ssize_t, value=int64_t)
cdef bytes _packed(list values)
@cython.locals(raw="const unsigned char*", at=Py_ssize_t, values=list)
cdef list _unpacked(bytes packed)
