cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Span
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.shared_parts cimport SharedSet, record_sets
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef class _ConnectionExposure:
    cdef public str client
    cdef public str broker
    cdef public object client_id
    cdef public object principal
    cdef public object mechanism
    cdef public bint encrypted
    cdef public bint login
    cdef public bint by_token
    cdef public set secrets
    cdef public dict readable
    cdef public dict topics
    cdef public int64_t record_bytes
    cdef public int64_t bytes
    cdef public int64_t requests
    cdef public list login_exchanges
    cdef public Span span
    cdef public object over

    @cython.locals(response=Message)
    cpdef add(self, Exchange exchange, Message request, bint counts)
    cpdef merge(self, _ConnectionExposure later)
    cpdef name(self, topic)

@cython.locals(exchange=Exchange, request=Message, response=Message, row=_ConnectionExposure, each=SharedSet)
cdef _take(list exchanges, bint counts, Rows rows, labels, limits, set clean)
