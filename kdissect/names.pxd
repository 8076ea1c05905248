cimport cython

cdef class TopicNames:
    cdef public dict _told
    cdef public list order

    @cython.locals(known=KnownNames)
    cpdef KnownNames up_to(self, packet, Py_ssize_t count=*)

@cython.freelist(64)
@cython.no_gc
cdef class KnownNames:
    cdef public object _names
    cdef public object packet
    cdef public Py_ssize_t count
