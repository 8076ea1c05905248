cimport cython
from libc.stdint cimport int64_t
from kdissect.tls.flow cimport Flow
from kdissect.tls.handshake cimport read_certificates, read_client_hello, read_server_hello, read_ticket
from kdissect.tls.negotiation cimport Negotiation
from kdissect.tls.summary cimport SeenHandshake, chain_in

cdef int _APPLICATION_DATA, _CERTIFICATE, _CLIENT_HELLO, _CLIENT_KEY_EXCHANGE, _ENCRYPTED_EXTENSIONS, _FINISHED
cdef int _NEW_SESSION_TICKET, _SERVER_HELLO

@cython.final
cdef class Keying:
    cdef public tuple _flows
    cdef public bint _reads_certificates
    cdef public bint _stays_empty
    cdef public object _secrets
    cdef public object client
    cdef public object dark
    cdef public bint moved
    cdef public Negotiation negotiation
    cdef public SeenHandshake seen

    @cython.locals(flow=Flow, now=Negotiation)
    cpdef bint must_wait(self, int side, int kind) except -1
    cpdef bint is_dark_for(self, int side, int kind) except -1
    @cython.locals(now=Negotiation)
    cpdef bint is_refused(self, int side) except -1
    cpdef bint is_protected(self, Flow flow, int kind) except -1
    cpdef lacks(self)
    cpdef darken(self, why)
    @cython.locals(now=Negotiation)
    cpdef change_cipher(self, int side)
    @cython.locals(now=Negotiation, kind=cython.int, raw="const unsigned char*")
    cpdef take_message(self, int side, bytes message, int64_t offset, int64_t packet, int64_t timestamp_ns)
    cdef _client_hello(self, int side, bytes message)
    @cython.locals(now=Negotiation)
    cdef _server_hello(self, int side, bytes message)
    @cython.locals(flow=Flow)
    cdef _change_keys(self, int side, int kind)
