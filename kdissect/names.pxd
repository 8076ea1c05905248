cimport cython
from libc.stdint cimport int64_t

cdef class TopicNames:
    cdef public dict _told
    cdef public list order

    @cython.locals(known=list, at=Py_ssize_t, place=Py_ssize_t, told=int64_t, name=str)
    cpdef find(self, str topic_id, int64_t packet, Py_ssize_t count)
    @cython.locals(known=KnownNames)
    cpdef KnownNames up_to(self, int64_t packet, Py_ssize_t count=*)

@cython.freelist(64)
@cython.no_gc
cdef class KnownNames:
    cdef public object _names
    cdef public int64_t packet
    cdef public Py_ssize_t count
