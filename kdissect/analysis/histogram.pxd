cimport cython
from libc.stdint cimport int64_t

cdef int _EXACT_BITS
cdef object _SHORT

cdef class Histogram:
    cdef public dict buckets
    cdef public int64_t count
    cdef public object least
    cdef public object most
    cdef public object total

    cpdef add(self, value, int64_t times=*)
    @cython.locals(number=object)
    cpdef add_one(self, int64_t value)

cdef object _bucket(value)
@cython.locals(magnitude=int64_t, left=int64_t, shift=cython.int)
cdef int64_t _short_bucket(int64_t value) noexcept
@cython.locals(at=Py_ssize_t, histogram=Histogram)
cpdef add_known(list histograms, tuple values)
