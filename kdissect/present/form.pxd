cimport cython
from libc.stdint cimport int64_t


cpdef str duration(ns)
@cython.locals(left=int64_t, found=int64_t, scale=int64_t, digits=cython.int, parts=cython.int, unit=str)
cdef str _short(int64_t ns)
cpdef str size(count)
cpdef str seconds(ns)
@cython.locals(left=int64_t)
cdef str _micros(ns)

cdef class Clock:
    cdef public str letter
    cdef public object first_ns
    cdef public object _last_ns

    cpdef str text(self, ns)
