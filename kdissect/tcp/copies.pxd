cdef class Copies:
    cdef public list _identities
    cdef public object _latest_ns

    cpdef remember(self, identity, timestamp_ns)
