cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Grades
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.shared_parts cimport SharedSet, record_sets
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef class _Interval:
    cdef public int64_t requests
    cdef public int64_t request_bytes
    cdef public int64_t produced
    cdef public int64_t responses
    cdef public int64_t response_bytes
    cdef public int64_t fetched
    cdef public Grades errors

    cpdef add_request(self, Message request, int64_t produced)
    cpdef answer(self, Exchange exchange, Message response, int64_t fetched)
    cpdef merge(self, _Interval later)

@cython.locals(
    exchange=Exchange, request=Message, response=Message, found=SharedSet, row=_Interval, produced=int64_t,
    fetched=int64_t,
)
cdef _count(list exchanges, Rows rows, int64_t length_ns, limits)
