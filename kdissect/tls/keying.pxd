cimport cython
from kdissect.tls.flow cimport Flow
from kdissect.tls.handshake cimport read_certificates, read_client_hello, read_server_hello
from kdissect.tls.negotiation cimport Negotiation
from kdissect.tls.summary cimport SeenHandshake

@cython.final
cdef class Keying:
    cdef public tuple _flows
    cdef public bint _stays_empty
    cdef public object _secrets
    cdef public object client
    cdef public object dark
    cdef public bint moved
    cdef public Negotiation negotiation
    cdef public SeenHandshake seen

    @cython.locals(flow=Flow, now=Negotiation)
    cpdef bint must_wait(self, int side, record) except -1
    @cython.locals(now=Negotiation)
    cpdef bint is_refused(self, int side) except -1
    cpdef bint is_protected(self, Flow flow, record) except -1
    cpdef lacks(self)
    cpdef darken(self, why)
    @cython.locals(now=Negotiation)
    cpdef change_cipher(self, int side)
    @cython.locals(now=Negotiation, kind=cython.int)
    cpdef list take_message(self, int side, bytes message, record)
    cdef _client_hello(self, int side, bytes message)
    @cython.locals(now=Negotiation)
    cdef _server_hello(self, int side, bytes message)
    @cython.locals(flow=Flow)
    cdef _change_keys(self, int side, int kind)
