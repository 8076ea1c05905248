cimport cython

@cython.final
cdef class Negotiation:
    cdef public bint _is_complete
    cdef public object _master
    cdef public object _openers
    cdef public tuple _resumed
    cdef public object _transcript
    cdef public object client_hello
    cdef public object early_accepted
    cdef public object encrypted_premaster
    cdef public bint is_retried
    cdef public object server_hello
    cdef public object suite
    cdef public object ticket
    cdef public object version

    cpdef take_message(self, bytes message)
    @cython.locals(names=list)
    cpdef choose(self, hello)
    cpdef bint _is_resumed(self) except -1
