cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Span
from kdissect.analysis.histogram cimport Histogram
from kdissect.analysis.quotas cimport Quota
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.waits cimport asked_wait, is_long_poll_of, split
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.protocol.survey cimport Survey
from kdissect.session.throttling cimport told_ms

cdef int64_t _LARGE_BYTES

@cython.final
cdef class _Worst:
    cdef public int64_t count
    cdef public object total_ns
    cdef public list worst
    cdef public Span span

    cpdef add(self, ns, Exchange exchange)
    cpdef merge(self, _Worst later)

cdef class _PaceRow:
    cdef public Histogram latency
    cdef public Histogram broker
    cdef public object known_ns
    cdef public object behind_ns
    cdef public dict behind_seconds
    cdef public dict happened
    cdef public Histogram away
    cdef public Quota quota
    cdef public Histogram answered
    cdef public object least
    cdef public object beyond_limit
    cdef public object min_bytes
    cdef public object max_wait_ms
    cdef public Span span

    @cython.locals(response=Message, throttle_ms=int64_t)
    cpdef add(self, Exchange exchange, api, latency)
    @cython.locals(request=Message, response=Message, seen=Survey)
    cdef _count_poll(self, Exchange exchange, wait)
    @cython.locals(found=_Worst)
    cpdef happens(self, what, ns, Exchange exchange)
    cpdef merge(self, _PaceRow later)

@cython.locals(clients=dict, exchange=Exchange, request=Message, who=tuple, row=_PaceRow)
cdef _count(list exchanges, Rows rows)
