cimport cython

cdef class TopicNames:
    cdef public dict _told

    @cython.locals(known=KnownNames)
    cpdef KnownNames up_to(self, packet)

@cython.freelist(64)
@cython.no_gc
cdef class KnownNames:
    cdef public object _names
    cdef public object packet
