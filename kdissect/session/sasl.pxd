cimport cython
@cython.final
cdef class Login:
    cdef public object expires_ms
    cdef public object mechanism
    cdef public object outcome
    cdef public object principal

    cpdef summary(self)
