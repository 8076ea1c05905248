cimport cython
from libc.stdint cimport int64_t
from kdissect.tls.handshake cimport protocols, read_certificates

@cython.final
cdef class _Unopened:
    cdef public object _client_ns
    cdef public int64_t _first
    cdef public bint _is_over
    cdef public object refusal
    cdef public int64_t refusal_ns

    cpdef bint is_final(self) except -1
    cpdef take(self, bint is_client, int64_t size, int64_t ns, int64_t packet)
    cpdef lose(self)

@cython.final
cdef class SeenHandshake:
    cdef public object _asked
    cdef public tuple _certificates
    cdef public tuple _client_certificates
    cdef public list alerts
    cdef public object alpn
    cdef public object early_data
    cdef public object resumed
    cdef public object server_name
    cdef public object suite
    cdef public _Unopened unopened
    cdef public object version

    cpdef client_hello(self, hello)
    cpdef server_hello(self, hello, int version, asked)
    cpdef extensions(self, extensions)
    cdef bint _has_alerts(self) except -1
    cpdef list _encrypted_alert(self, left_ns)
    cpdef dict summary(self, left_ns=*)


@cython.locals(now_us=int64_t)
cdef list _shown(tuple seen)
cpdef chain_in(bytes message, int version)
@cython.locals(said=dict)
cpdef dict certificate(bytes der, now)
