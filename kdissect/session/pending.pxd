from kdissect.exchange cimport Exchange

cdef class Pending:
    cdef public dict _waiting
    cdef public dict _by_correlation
    cdef public dict _tokens
    cdef public object _serial
    cdef public object _oldest
    cdef public object held_bytes

    cpdef add(self, Exchange exchange, gaps)
    cpdef find(self, correlation_id)
    cpdef token(self)
    cpdef list older_than(self, serial)
    cpdef request(self, serial)
    cpdef Exchange remove(self, serial)

cdef _cost(Exchange exchange)
