cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Depth, Grades, Span
from kdissect.analysis.histogram cimport Histogram, of_parts
from kdissect.analysis.rows cimport Rows
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

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
    cdef public tuple ended

    @cython.locals(request=Message, response=Message)
    cpdef add(self, Exchange exchange)
    @cython.locals(request=Message, response=Message)
    cpdef count(self, Exchange exchange, asked_ns, answered_ns)
    cpdef merge(self, _ConnectionSoFar later)

cdef Py_ssize_t _ALONE

@cython.final
@cython.no_gc
cdef class _KeptRow:
    cdef _ConnectionSoFar _open
    cdef bytes _packed
    cdef Py_ssize_t _place

    cpdef _ConnectionSoFar opened(self)
    cpdef merge(self, _KeptRow later)
    @cython.locals(row=_ConnectionSoFar)
    cdef _pack(self)
    cdef bytes _alone(self)

@cython.locals(kept=_KeptRow)
cpdef _KeptRow _kept(_ConnectionSoFar row)
cdef bytes _packed(_ConnectionSoFar row)
@cython.locals(row=_ConnectionSoFar)
cdef _ConnectionSoFar _unpacked(bytes packed)
@cython.locals(row=_KeptRow)
cdef _put_together(Rows rows)
@cython.locals(exchange=Exchange, row=_KeptRow)
cdef _count(list exchanges, Rows rows)
