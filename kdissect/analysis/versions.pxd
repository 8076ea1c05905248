cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

@cython.final
cdef class _SpokenVersions:
    cdef public dict spoken
    cdef public int64_t left_out

    cpdef add(self, tuple spoken, int64_t count)
    cpdef merge(self, _SpokenVersions later)

@cython.locals(exchange=Exchange, request=Message, spoken=tuple, talk=_SpokenVersions)
cdef _count(list exchanges, dict known, take)
