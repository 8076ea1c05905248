cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.batches cimport Batches
from kdissect.analysis.counters cimport Span
from kdissect.analysis.labels cimport Labels
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.shared_parts cimport SharedSet, record_sets, topics_of
from kdissect.analysis.topics cimport replica_id
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

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
@cython.locals(exchange=Exchange, request=Message, flow=_EdgeFlow, flows=Rows)
cdef _count(list exchanges, graph)
@cython.locals(known=dict, made_of=tuple)
cdef _edge(Exchange exchange, target, kind, relation, graph)
cdef list _edges(Exchange exchange, str api, graph)
@cython.locals(each=SharedSet, both=Batches, found=dict, labels=Labels, asked=Message)
cdef list _records(Exchange exchange, str api, graph)
@cython.locals(out=list)
cdef list _group(Exchange exchange, str api, graph)
cdef list _administered(Exchange exchange, graph)
