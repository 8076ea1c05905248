cimport cython
from libc.stdint cimport int64_t

cpdef bint is_metadata_topic(word, other=*) except -1

cdef class TopicNames:
    cdef public dict _told
    cdef public list order

    @cython.locals(known=list)
    cpdef learn(self, str topic_id, str name, int64_t packet)
    @cython.locals(left_out=Py_ssize_t, topic_id=str, name=str, packet=int64_t)
    cpdef Py_ssize_t learn_all(self, taught, Py_ssize_t most) except -1
    @cython.locals(tellings=list, at=Py_ssize_t, place=Py_ssize_t, told=int64_t, name=str)
    cpdef find(self, str topic_id, int64_t packet, Py_ssize_t count)
    @cython.locals(known=KnownNames)
    cpdef KnownNames up_to(self, int64_t packet, Py_ssize_t count=*)

@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class KnownNames:
    cdef public object _names
    cdef public int64_t packet
    cdef public Py_ssize_t count
