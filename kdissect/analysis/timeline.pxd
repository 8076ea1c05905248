cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Grades
from kdissect.analysis.histogram cimport Histogram
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.waits cimport split
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef class _TimelineInterval:
    cdef public int64_t requests
    cdef public int64_t request_bytes
    cdef public int64_t responses
    cdef public int64_t response_bytes
    cdef public Grades errors
    cdef public Histogram broker

    cpdef add_request(self, Message request)
    cpdef answer(self, Exchange exchange, Message response)
    cpdef merge(self, _TimelineInterval later)

@cython.locals(exchange=Exchange, request=Message, response=Message, row=_TimelineInterval)
cdef _count(list exchanges, Rows rows, int64_t length_ns)
