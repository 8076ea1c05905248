cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.message cimport Request, Response
from kdissect.model cimport Frame
from kdissect.protocol.survey cimport Route, Survey, survey_at
from kdissect.record.sound cimport is_sound
from kdissect.session.briefs cimport Brief, PairLayout
from kdissect.session.expected cimport Expected, expected_of
from kdissect.session.pairing cimport Completed, Session
from kdissect.session.sasl cimport Login
from kdissect.session.throttling cimport told_ms
from kdissect.tcp.packed cimport number, put
from kdissect.tcp.reassembly cimport Reassembler

cdef int API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE, _FEW, _UNSUPPORTED_VERSION
cdef int64_t _ALWAYS, _MILLISECOND, _NEVER, _NOT_KNOWN, _ON_ITS_WAY_NS, _REQUEST_BYTES
cdef Py_ssize_t _HEADER_BYTES, _KEYS, _LONGEST_KEPT, _LONGEST_TEXT, _MOST_FORMS

@cython.final
cdef class PairLayouts:
    cdef dict _known
    cdef bytes _offer
    cdef PairLayout _offer_form
    cdef list _recent
    cdef bytes _request
    cdef PairLayout _request_form
    cdef bint _shows
    cdef object _software
    cdef public bint checks_bodies
    cdef public bint checks_records
    cdef public bint judges
    cdef public bint reports_faults

    @cython.locals(found=PairLayout, recent=PairLayout)
    cpdef PairLayout find(self, int key, int version)
    @cython.locals(form=PairLayout, data=bytes, start=Py_ssize_t, size=Py_ssize_t, known=bytes, body=bytes)
    cdef software_of(self, Brief brief)
    @cython.locals(form=PairLayout, data=bytes, start=Py_ssize_t, size=Py_ssize_t, known=bytes, body=bytes)
    cdef bint shows_answers_first(self, Brief brief) except -1
    @cython.locals(found=PairLayout)
    cdef PairLayout _find(self, int key, int version)

@cython.final
cdef class QuickSession:
    cdef public bint _answers_first
    cdef public bytes _client
    cdef public int64_t _connection
    cdef public tuple _ends
    cdef public Expected _expected
    cdef public PairLayouts _forms
    cdef public int64_t _latest_api_key
    cdef public PairLayout _latest_form
    cdef public int64_t _latest_id
    cdef public int64_t _latest_ns
    cdef public object _limits
    cdef public Py_ssize_t _most_waiting
    cdef public int64_t _mute_end_ns
    cdef public Reassembler _requests
    cdef public Reassembler _responses
    cdef public int64_t _serial
    cdef public int64_t _client_bytes
    cdef public list _waiting
    cdef public int64_t _waiting_bytes
    cdef public int client
    cdef public str client_id
    cdef public str ending
    cdef public int64_t exchanges
    cdef public bint is_encrypted
    cdef public Login login
    cdef public int64_t most_bytes
    cdef public object principal
    cdef public object software

    cpdef begin(
        self, int64_t connection, int client, tuple ends, limits, bint from_start, Reassembler requests,
        Reassembler responses, PairLayouts forms,
    )
    @cython.locals(numbers=bytearray, raw="unsigned char*")
    cpdef tuple parts(self)
    cpdef int64_t held_bytes(self) except -1
    @cython.locals(
        raw="const unsigned char*", length=Py_ssize_t, body=Py_ssize_t, key=cython.int, form=PairLayout, client=bytes,
        high=int64_t, correlation_id=int64_t, waiting=Brief, seen=Survey, brief=Brief, way=Route, said=bytes,
    )
    cpdef Brief take_request(
        self, int64_t packet, bytes data, Py_ssize_t start, Py_ssize_t end, int64_t offset, int64_t first_ns,
        int64_t last_packet, int64_t last_ns, Frame frame,
    )
    @cython.locals(
        raw="const unsigned char*", brief=Brief, high=int64_t, correlation_id=int64_t, form=PairLayout, body=Py_ssize_t,
        key=cython.int, seen=Survey, throttle_ms=int64_t, throttle_ns=int64_t, way=Route, is_looked_at=cython.bint,
        is_at_hand=cython.bint,
    )
    cpdef take_response(
        self, bytes data, Py_ssize_t start, Py_ssize_t end, int64_t offset, int64_t first_ns, int64_t last_packet,
        int64_t last_ns, Frame frame,
    )
    @cython.locals(exchange=Exchange, form=PairLayout)
    cdef Completed _complete_whole(self, Brief brief)
    @cython.locals(brief=Brief)
    cpdef renumber(self, int64_t number, exchange_number)
    @cython.locals(brief=Brief)
    cpdef resume_with(self, PairLayouts forms)
    @cython.locals(found=PairLayout, latest=PairLayout)
    cdef PairLayout _form(self, int key, int version)
    @cython.locals(brief=Brief, exchange=Exchange)
    cpdef hand_over(self, Session session)
    cdef _learn_login(self, int key, bytes said)
    @cython.locals(asked=Survey, answered=Survey)
    cdef bint _is_sound(self, Brief brief) except -1
    @cython.locals(before=int64_t, asked=int64_t, think=int64_t)
    cdef _set_think_time(self, Brief brief)
    @cython.locals(
        asked=int64_t, before=int64_t, behind=int64_t, answered=int64_t, network=int64_t, path=int64_t, left=int64_t,
        muted=int64_t,
    )
    cdef bint _set_waits(self, Brief brief, int64_t throttle_ns) except -1

@cython.locals(made=QuickSession, numbers=bytearray, raw="const unsigned char*")
cpdef QuickSession quick_session_of(tuple parts, tuple streams)
cdef _begin(Brief brief)
cdef Survey _survey_login(Route way, bytes data, Py_ssize_t start, Py_ssize_t end, limits)
@cython.locals(places=list, at=Py_ssize_t)
cdef bint _are_sound(bytes data, Survey seen, limits, bint may_end_early) except -1
