cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.batches cimport Batches
from kdissect.analysis.counters cimport Span
from kdissect.analysis.shared_parts cimport SharedSet, record_sets, topics_of
from kdissect.exchange cimport Exchange

@cython.final
cdef class _EdgeFlow:
    cdef public str broker
    cdef public int64_t exchanges
    cdef public object records
    cdef public object bytes
    cdef public bint encrypted
    cdef public Span span

    cpdef add(self, Exchange exchange, Batches batches)
    cpdef merge(self, _EdgeFlow later)

cdef list _NO_EDGES
@cython.locals(exchange=Exchange, flow=_EdgeFlow)
cdef _count(list exchanges, graph)
cdef list _edges(Exchange exchange, str api, graph)
@cython.locals(each=SharedSet, both=Batches, found=dict)
cdef list _records(Exchange exchange, str api, graph)
@cython.locals(out=list)
cdef list _group(Exchange exchange, str api, graph)
cdef list _administered(Exchange exchange, graph)
