cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

@cython.freelist(64)
@cython.no_gc
@cython.final
cdef class Waiting:
    cdef public Exchange exchange
    cdef public int64_t losses

@cython.final
cdef class Pending:
    cdef public dict _waiting
    cdef public dict _by_correlation
    cdef public dict _tokens
    cdef public object _serial
    cdef public object _oldest
    cdef public int64_t held_bytes

    @cython.locals(request=Message)
    cpdef add(self, Exchange exchange, int64_t losses)
    cpdef begin_at(self, said)
    cpdef list clear(self)
    cpdef find(self, correlation_id)
    cpdef token(self)
    cpdef oldest(self)
    cpdef list older_than(self, serial)
    cpdef request(self, serial)
    cpdef Exchange remove(self, serial)
    @cython.locals(waiting=Waiting, request=Message)
    cpdef Waiting take(self, serial)

cdef int64_t _cost(Exchange exchange) except -1
