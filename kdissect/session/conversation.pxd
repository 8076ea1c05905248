cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Chunk, Frame, Segment
from kdissect.protocol.framing cimport Framer
from kdissect.session.dialogue cimport Dialogue
from kdissect.session.pairing cimport Recognised
from kdissect.tcp.duplex cimport Duplex

cdef class Conversation:
    cdef public object _broker_ports
    cdef public list _bytes
    cdef public Duplex _duplex
    cdef public bint _flushed
    cdef public tuple _framers
    cdef public object _held
    cdef public object _limits
    cdef public object _origin
    cdef public object _preambles
    cdef public tuple _proxied
    cdef public list _proxies
    cdef public object _recogniser
    cdef public object _secrets
    cdef public Dialogue _session
    cdef public object _skipped
    cdef public object _tls
    cdef public object _verdict
    cdef public tuple _witnesses
    cdef public int64_t counted_bytes
    cdef public int64_t held_bytes
    cdef public object number
    cdef object __weakref__

    @cython.locals(out=list, pieces=object)
    cpdef list feed(self, Segment segment)
    cpdef bint _is_over(self) except -1
    @cython.locals(last_ns=int64_t, silent_ns=int64_t)
    cpdef bint has_lingered(self, int64_t now_ns, int64_t linger_ns) except -1
    @cython.locals(chunk=Chunk)
    cdef _take(self, pieces, packet, list out)
    @cython.locals(framer=Framer)
    cdef _frame(self, int side, piece, packet, list out)
    @cython.locals(found=list)
    cdef _pair(self, int side, events, packet, list out)
    @cython.locals(first=Framer, second=Framer, held=int64_t)
    cdef _weigh(self)

cpdef list recognised_in_order(events)
