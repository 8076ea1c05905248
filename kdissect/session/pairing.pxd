cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange, begin_exchange
from kdissect.message cimport Message, Request, Response, parse_request, parse_response
from kdissect.model cimport Frame, Value
from kdissect.protocol.header cimport read_correlation_id
from kdissect.protocol.survey cimport Survey
from kdissect.session.expected cimport Expected
from kdissect.session.pending cimport Pending, Waiting
from kdissect.session.sasl cimport Login
from kdissect.session.throttling cimport told_ms
from kdissect.session.witness cimport FrameWitness
from kdissect.tcp.reassembly cimport Reassembler

cdef int API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE, _FEW
cdef int64_t _ALWAYS, _MILLISECOND, _NEVER
cdef object _TO_BROKER

@cython.no_gc
@cython.final
cdef class Recognised(Value):
    cdef public Exchange exchange

@cython.no_gc
@cython.final
cdef class Completed(Value):
    cdef public Exchange exchange

@cython.final
cdef class Session:
    cdef public object _connection
    cdef public object _client
    cdef public object _broker
    cdef public object _limits
    cdef public int64_t _most
    cdef public object _inferred
    cdef public Pending _pending
    cdef public FrameWitness witness
    cdef public Expected _expected
    cdef public bint _expects_tokens
    cdef public bint _saw_request
    cdef public bint _saw_response
    cdef public object ending
    cdef public int64_t _response_losses
    cdef public int64_t _response_gap
    cdef public int64_t _gap_packet
    cdef public object _request_loss
    cdef public bint _is_fresh_loss
    cdef public bint takes_all
    cdef public int64_t _turning_effort
    cdef public int64_t _client_bytes
    cdef public object _answered
    cdef public Reassembler _requests
    cdef public Reassembler _responses
    cdef public bint _answers_first
    cdef public bint _is_latest
    cdef public object _latest_api_key
    cdef public int64_t _mute_end_ns
    cdef public int64_t _latest_ns
    cdef public bint _latest_is_whole
    cdef public int64_t _lost_behind
    cdef public object _latest_id
    cdef public object _evicted
    cdef public int64_t exchanges
    cdef public object client_id
    cdef public object software
    cdef public Login login

    cpdef begin(
        self, connection, client, broker, limits, inferred, correlation_id, client_id, bint from_start,
        Reassembler requests, Reassembler responses,
    )
    cpdef list feed(self, Frame frame, packet)
    cpdef end(self, reason)
    @cython.locals(out=list, waiting=Waiting)
    cpdef list close(self)
    cpdef int64_t held_bytes(self) except -1
    cpdef bint is_settled(self) except -1
    @cython.locals(request=Request, exchange=Exchange, out=list, lost=Exchange, begun=Recognised, older=Waiting, key=cython.int)
    cdef list _feed_request(self, Frame frame, packet)
    cdef bint _is_late_request(self, Request request, Frame frame) except -1
    @cython.locals(seen=Survey)
    cdef bint _expects_no_response(self, Request produce) except -1
    @cython.locals(payload=bytes)
    cdef bint _is_token(self, Frame frame) except -1
    cdef _evict(self)
    @cython.locals(before=int64_t, asked=int64_t, think=int64_t)
    cdef _set_think_time(self, Exchange exchange, Frame frame)
    @cython.locals(
        exchange=Exchange, request=Message, asked=int64_t, before=int64_t, behind=int64_t, answered=int64_t, network=int64_t, path=int64_t,
        left=int64_t, muted=int64_t,
    )
    cdef bint _set_waits(self, Waiting waiting, Frame frame, int64_t throttle_ns) except -1
    cdef _note_response(self, Frame frame, correlation_id, int64_t mute_ns, api_key=*)
    @cython.locals(asked=Request, exchange=Exchange, out=list, waiting=Waiting, done=Completed, throttle_ns=int64_t, seen=Survey, key=cython.int)
    cdef list _feed_response(self, Frame frame, packet)
    cdef list _resolve_earlier(self, serial, Frame frame)
    @cython.locals(exchange=Exchange)
    cdef Exchange _exchange(self, Frame frame, packet)
    @cython.locals(key=cython.int)
    cdef _learn_from_request(self, Request request)
    cdef _learn_from_response(self, Exchange exchange)
    cdef _missing_reason(self, Waiting waiting)
    cdef list _report_headless(self, Frame frame, what)
    cdef _loss_reason(self, Waiting waiting)

cdef list _own_faults(Frame frame)
