cimport cython
from libc.stdint cimport int64_t

cdef class Histogram:
    cdef public dict buckets
    cdef public int64_t count
    cdef public object least
    cdef public object most
    cdef public object total

    cpdef add(self, value, int64_t times=*)

cdef object _bucket(value)
@cython.locals(at=Py_ssize_t, histogram=Histogram)
cpdef add_known(list histograms, tuple values)
