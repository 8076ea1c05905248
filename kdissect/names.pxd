cdef class KnownNames:
    cdef public object _names
    cdef public object packet
