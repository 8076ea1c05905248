cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Span
from kdissect.analysis.rows cimport Rows
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

@cython.final
cdef class _Stretch:
    cdef public int64_t requests
    cdef public object first_ns
    cdef public object last_ns
    cdef public int64_t first_exchange
    cdef public int64_t content

    cpdef joined(self, _Stretch later)

@cython.final
cdef class _LongestStretches:
    cdef public _Stretch head
    cdef public _Stretch best
    cdef public _Stretch tail

    @cython.locals(last=_Stretch)
    cpdef go_on(self, ns, int64_t number, int64_t content, gap_ns)
    @cython.locals(last=_Stretch)
    cpdef add(self, _Stretch later, gap_ns)
    cdef _compare(self, _Stretch one)
    cpdef merge(self, _LongestStretches later, gap_ns)
    @cython.locals(found=_Stretch, each=_Stretch)
    cpdef _Stretch longest(self)

cdef class _Repeat:
    cdef public str client
    cdef public str broker
    cdef public object client_id
    cdef public int64_t replica_id
    cdef public Span span
    cdef public int64_t count
    cdef public _LongestStretches at_once
    cdef public _LongestStretches soon
    cdef public list exchanges

    @cython.locals(request=Message)
    cpdef add(self, Exchange exchange, int64_t code)
    cpdef merge(self, _Repeat later)

@cython.locals(exchange=Exchange, response=Message, row=_Repeat)
cdef _count(list exchanges, Rows rows, count_failed)
