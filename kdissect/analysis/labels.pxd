cimport cython
from libc.stdint cimport int64_t

cdef dict _NAMED
cdef dict _WITH_ID

cdef _remembered(dict known, word, topic)

@cython.final
cdef class Labels:
    cdef object _latest
    cdef int64_t _most
    cdef dict _names
    cdef dict _unnamed

    cpdef topic(self, name, topic_id)
    cpdef merge(self, Labels later)
    cpdef resolve_names(self)
