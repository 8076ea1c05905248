cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Span
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef int _API_VERSIONS

@cython.final
cdef class _ClientTalk:
    cdef public int64_t connections
    cdef public int64_t exchanges
    cdef public int64_t request_bytes
    cdef public int64_t response_bytes
    cdef public dict spoken
    cdef public Span span

    @cython.locals(response=Message, spoken=tuple)
    cpdef add(self, Exchange exchange, Message request)
    cpdef merge(self, _ClientTalk later)

@cython.locals(exchange=Exchange, request=Message, known=tuple, talk=_ClientTalk)
cdef _count(list exchanges, dict talkers, talk_of)
