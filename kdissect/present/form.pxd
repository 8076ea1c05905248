cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.json_text cimport JsonText


cdef bytes _MICROSECONDS
cdef int64_t _FAR, _LONG, _MEBI, _SECOND

cpdef str duration(ns)
@cython.locals(
    start=Py_ssize_t, cells=cython.int, unit=bytes, scale=int64_t, digits=cython.int, parts=int64_t, found=int64_t, left=int64_t,
)
cpdef int write_duration(JsonText out, int64_t ns) except -1
@cython.locals(left=int64_t, found=int64_t, scale=int64_t, digits=cython.int, parts=cython.int, unit=str)
cdef str _short(int64_t ns)
cpdef str size(count)
@cython.locals(found=int64_t, left=int64_t)
cpdef write_size(JsonText out, int64_t count)
cpdef str seconds(ns)
@cython.locals(left=int64_t)
cdef str _micros(ns)

@cython.final
cdef class Clock:
    cdef public str letter
    cdef public object first_ns
    cdef public object _last_ns

    @cython.locals(first=int64_t, left=int64_t)
    cpdef write(self, JsonText out, int64_t ns)
    cpdef str text(self, ns)
