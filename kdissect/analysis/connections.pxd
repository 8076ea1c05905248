cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Depth, Grades, Span
from kdissect.analysis.histogram cimport Histogram
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

@cython.final
cdef class _ClosedConnection:
    cdef public str broker
    cdef public str client
    cdef public object clock_ahead_ns
    cdef public str end
    cdef public int64_t end_ns
    cdef public int64_t gap_bytes
    cdef public int64_t packets
    cdef public str protocol
    cdef public int64_t retransmitted
    cdef public int64_t skipped_bytes
    cdef public object software
    cdef public int64_t start_ns
    cdef public object tls

cdef class _ConnectionSoFar:
    cdef public str client
    cdef public str broker
    cdef public object client_id
    cdef public int64_t requests
    cdef public int64_t responses
    cdef public int64_t request_bytes
    cdef public int64_t response_bytes
    cdef public Grades errors
    cdef public Histogram latency
    cdef public Depth depth
    cdef public Span span
    cdef public _ClosedConnection ended

    @cython.locals(request=Message, response=Message)
    cpdef add(self, Exchange exchange)
    @cython.locals(request=Message, response=Message)
    cpdef count(self, Exchange exchange, asked_ns, answered_ns)
    cpdef merge(self, _ConnectionSoFar later)

@cython.locals(exchange=Exchange, row=_ConnectionSoFar)
cdef _count(list exchanges, rows)
