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

cdef int _API_VERSIONS

@cython.locals(exchange=Exchange, request=Message, known=tuple, talk=_SpokenVersions)
cdef _count(list exchanges, facts, dict all_known, dict talkers)
@cython.locals(
    request=Message, response=Message, spoken=tuple, known=tuple, talk=_SpokenVersions, is_same=bint, is_answered=bint
)
cdef _take(Exchange exchange, bint counts, facts, dict all_known, dict talkers)
cdef _talker(Exchange exchange)
