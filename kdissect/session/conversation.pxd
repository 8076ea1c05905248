cimport cython
from kdissect.protocol.framing cimport Framer
from kdissect.session.pairing cimport Session
from kdissect.tcp.duplex cimport Duplex

cdef class Conversation:
    cdef dict __dict__
    cdef public object _broker_ports
    cdef public list _bytes
    cdef public Duplex _duplex
    cdef public bint _flushed
    cdef public tuple _framers
    cdef public object _held
    cdef public object _limits
    cdef public object _recogniser
    cdef public object _secrets
    cdef public Session _session
    cdef public object _skipped
    cdef public object _tls
    cdef public object _verdict
    cdef public object held_bytes
    cdef public object number
    cdef object __weakref__

    @cython.locals(out=list)
    cpdef feed(self, segment)
    cpdef bint _is_over(self) except -1
    cpdef bint has_lingered(self, now_ns, linger_ns) except -1
    @cython.locals(out=list, data=bytes)
    cdef list _take(self, pieces, packet)
    @cython.locals(framer=Framer)
    cdef list _frame(self, int side, piece, packet)
    @cython.locals(out=list)
    cdef list _pair(self, int side, events, packet)
    cdef _witness(self, Framer framer)
    @cython.locals(first=Framer, second=Framer)
    cdef _weigh(self)
