cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.rows cimport Rows
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.model cimport Frame

cdef int _LARGE_BYTES

cdef class _ConnectionTcp:
    cdef public object over
    cdef public object client_id
    cdef public object ready_ns
    cdef public object prepared_ns
    cdef public object first_ns
    cdef public object login_ns
    cdef public int64_t exchanges
    cdef public list slow
    cdef public list waiting
    cdef public set answered
    cdef public object left_ns
    cdef public object last
    cdef public int64_t large
    cdef public list slow_large

    @cython.locals(request=Message, response=Message, frame=Frame)
    cpdef add(self, Exchange exchange)
    @cython.locals(took_ns=object)
    cdef _carried(self, number, Message message)
    cpdef merge(self, _ConnectionTcp later)

@cython.locals(exchange=Exchange, row=_ConnectionTcp)
cdef _count(list exchanges, Rows rows)
cdef bint _leaves(Exchange exchange, str api) except -1
cdef dict _BLANK
@cython.locals(facts=dict, waiting=list, large=list, out=dict)
cdef dict _result(number, _ConnectionTcp row, over)
