cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.batches cimport Batches
from kdissect.analysis.counters cimport Span
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
