cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Request, Response
from kdissect.session.pending cimport Pending
from kdissect.session.witness cimport FrameWitness

cdef class Session:
    cdef public object _connection
    cdef public object _client
    cdef public object _broker
    cdef public object _limits
    cdef public object _inferred
    cdef public Pending _pending
    cdef public FrameWitness witness
    cdef public bint _expects_tokens
    cdef public bint _saw_request
    cdef public bint _saw_response
    cdef public object _ending
    cdef public object _response_gaps
    cdef public object _request_gaps
    cdef public object _told_bytes
    cdef public object _answered
    cdef public object _evicted
    cdef public object exchanges
    cdef public object client_id
    cdef public object software
    cdef public object login

    @cython.locals(out=list)
    cpdef list feed(self, frame, packet)
    @cython.locals(request=Request, exchange=Exchange, out=list, lost=Exchange)
    cdef list _feed_request(self, frame, packet)
    cdef _asks_for_nothing(self, Request produce)
    cdef bint _is_token(self, frame) except -1
    cdef list _evict(self)
    @cython.locals(asked=Request, exchange=Exchange, out=list, payload=bytes)
    cdef list _feed_response(self, frame, packet)
    cdef list _settle_earlier(self, serial, frame)
    @cython.locals(exchange=Exchange)
    cdef Exchange _exchange(self, frame, packet)
    cdef _learn_from_request(self, Request request)
    cdef _learn_from_response(self, Exchange exchange)
    cdef _why_missing(self, waiting)

cdef list _own_faults(frame)
