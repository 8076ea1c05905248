cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.batches cimport Batches
from kdissect.analysis.counters cimport Grades, Span
from kdissect.analysis.shared_parts cimport SharedParts, SharedSet
from kdissect.exchange cimport Exchange

cdef class _PartitionTraffic:
    cdef public int64_t exchanges
    cdef public Batches batches
    cdef public Span corrupt
    cdef public Grades errors
    cdef public Span span

    @cython.locals(batches=Batches)
    cpdef add(self, Exchange exchange, SharedSet found)
    cpdef merge(self, _PartitionTraffic later)

cdef object _replica_of
@cython.locals(shared=SharedParts)
cpdef replica_id(Exchange exchange)
