cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.histogram cimport Histogram, add_known
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.waits cimport split
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef class _Parts:
    cdef public int64_t count
    cdef public list times

    cpdef add(self, Exchange exchange)
    @cython.locals(mine=Histogram)
    cpdef merge(self, _Parts later)

@cython.locals(exchange=Exchange, request=Message, row=_Parts)
cdef _count(list exchanges, Rows rows)
