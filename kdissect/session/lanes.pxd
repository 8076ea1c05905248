cimport cython
from kdissect.model cimport Segment
from kdissect.session.conversation cimport Conversation

@cython.no_gc
@cython.final
cdef class Lane:
    cdef public Conversation conversation
    cdef public bytes ends
    cdef public int side

@cython.locals(lane=Lane)
cdef Lane _lane(Conversation conversation, int side, bytes ends)

@cython.final
cdef class LaneTable:
    cdef public dict by_ends
    cdef list _recent

    @cython.locals(lane=Lane, raw="const unsigned char*", at=Py_ssize_t)
    cpdef Lane find(self, bytes data, Py_ssize_t place, Py_ssize_t size)
    @cython.locals(
        source=bytes, destination=bytes, ends=bytes, other=bytes, size=Py_ssize_t, side=cython.int,
        one="const unsigned char*", two="const unsigned char*", first=bytes, second=bytes, first_port=bytes,
        second_port=bytes,
    )
    cpdef open(self, Conversation conversation, Segment segment)
    @cython.locals(lane=Lane)
    cpdef close(self, Conversation conversation)
    cpdef clear(self)

@cython.locals(raw="const unsigned char*")
cdef Py_ssize_t _recent_at(bytes data, Py_ssize_t end) noexcept
