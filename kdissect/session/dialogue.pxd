cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Frame
from kdissect.session.pairing cimport Session

cdef object _TO_BROKER

@cython.final
cdef class Dialogue:
    cdef public Session _first
    cdef public Session _second
    cdef public tuple _turned_arguments
    cdef public tuple _turned_streams

    @cython.locals(first=Session)
    cpdef begin(
        self, connection, client, broker, limits, inferred, correlation_id, client_id, bint from_start,
        tuple streams,
    )
    cpdef end(self, reason)
    @cython.locals(out=list)
    cpdef list close(self)
    @cython.locals(events=list)
    cpdef list feed(self, Frame frame, packet)
    @cython.locals(held=int64_t)
    cpdef int64_t held_bytes(self) except -1
    cdef tuple _sessions(self)
    cdef Session _turn(self)
    @cython.locals(asker=Session, answered=Session, heard=Session)
    cdef list _feed_either(self, Session second, Frame frame, packet)
