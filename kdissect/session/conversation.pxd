cimport cython
from libc.stdint cimport int64_t
from kdissect.capture.segments cimport SegmentReader
from kdissect.model cimport Chunk, Frame, Segment
from kdissect.protocol.framing cimport Framer, chunk_in, read_size_prefix
from kdissect.session.dialogue cimport Dialogue
from kdissect.session.evidence cimport begins_ordinary_request
from kdissect.session.briefs cimport Brief
from kdissect.session.pairing cimport Completed, Recognised, Session
from kdissect.session.quick cimport PairLayouts, QuickSession, quick_session_of
from kdissect.session.recognise cimport Recogniser, at_once, begins_tls, plain_verdict
from kdissect.session.witness cimport FrameWitness
from kdissect.tcp.duplex cimport Duplex, duplex_of
from kdissect.tcp.reassembly cimport Reassembler
from kdissect.tls.stage cimport TlsStage

cdef object _FROM_BROKER, _TO_BROKER

@cython.final
cdef class Conversation:
    cdef public object _broker_ports
    cdef public int64_t _first_bytes
    cdef public int64_t _other_bytes
    cdef public Duplex _duplex
    cdef public bint _flushed
    cdef public PairLayouts _forms
    cdef public tuple _framers
    cdef public object _held
    cdef public bint _skips_records
    cdef public object _limits
    cdef public object _listener
    cdef public object _origin
    cdef public object _preambles
    cdef public tuple _proxied
    cdef public list _proxies
    cdef public QuickSession _quick
    cdef public Recogniser _recogniser
    cdef public Dialogue _replaced
    cdef public object _secrets
    cdef public Dialogue _session
    cdef public object _skipped
    cdef public TlsStage _tls
    cdef public object _verdict
    cdef public tuple _witnesses
    cdef public int64_t counted_bytes
    cdef public list ends
    cdef public int64_t held_bytes
    cdef public int64_t waits_since
    cdef public object number
    cdef object __weakref__

    cpdef begin(self, number, Segment first, limits, broker_ports, secrets, listener, PairLayouts forms)
    @cython.locals(out=list, pieces=object)
    cpdef list feed(self, Segment segment)
    @cython.locals(duplex=Duplex, stream=Reassembler, start=int64_t, length=int64_t, offset=int64_t, framer=Framer, frame=Frame, chunk=Chunk)
    cpdef bint take(
        self, int64_t packet, int64_t timestamp_ns, int side, SegmentReader seen, bytes data, list out
    ) except -1
    cpdef bint _is_over(self) except -1
    @cython.locals(one=Reassembler, other=Reassembler)
    cpdef bint is_silent(self) except -1
    @cython.locals(one=Reassembler, other=Reassembler)
    cpdef bint is_ordinary(self, bint reports_faults) except -1
    @cython.locals(duplex=Duplex, one=Reassembler, other=Reassembler, quick=QuickSession, client=cython.int, session=Session)
    cpdef summary(self, end=*, bint adds_tcp=*)
    @cython.locals(last_ns=int64_t, silent_ns=int64_t)
    cpdef bint has_lingered(self, int64_t now_ns, int64_t linger_ns) except -1
    @cython.locals(
        quick=QuickSession, at=Py_ssize_t, end=Py_ssize_t, begin=Py_ssize_t, stop=Py_ssize_t, size=int64_t, place=int64_t,
        is_request=cython.bint, framer=Framer, frame=Frame, rest=Chunk,
    )
    cdef _frame_quickly(
        self, int side, int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, Py_ssize_t start,
        Py_ssize_t length, int64_t now, list out,
    )
    @cython.locals(payload=bytes, end=Py_ssize_t, place=int64_t, first_ns=int64_t, packet=int64_t, last_ns=int64_t)
    cdef _pair_quickly(self, QuickSession quick, bint is_request, Frame frame, int64_t now, list out)
    cdef list _feed_plain(self, int side, piece, packet)
    cdef list _recognise(self, int side, piece, packet)
    @cython.locals(starts=tuple)
    cdef list _set_protocol(self, verdict, packet)
    cdef bint _begins_ordinary_request(self, int side, bytes data, Py_ssize_t start, Py_ssize_t length) except -1
    @cython.locals(streams=tuple, ends=tuple, client=cython.int, quick=QuickSession)
    cdef _begin_quickly(self, verdict)
    @cython.locals(client=cython.int, broker=cython.int, session=Dialogue, witness=FrameWitness)
    cdef _begin_session(self, verdict, tuple starts)
    cdef tuple _new_framers(self, int client, tuple starts)
    @cython.locals(quick=QuickSession)
    cpdef leave_quick(self)
    cdef bint _is_opened(self, int side) except -1
    cdef _end_of(self, int side)
    cdef _name(self, int side)
    cdef list _mark(self, list events)
    @cython.locals(session=Session, first=Framer, second=Framer)
    cdef _return_to_quick(self)
    @cython.locals(chunk=Chunk)
    cdef _take(self, pieces, packet, list out)
    @cython.locals(pieces=list, taken=Py_ssize_t, chunk=Chunk)
    cdef _take_encrypted(
        self, TlsStage tls, int side, int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, Py_ssize_t start,
        Py_ssize_t length, list out,
    )
    cdef bint _begins_tls(self, bytes data, Py_ssize_t start, Py_ssize_t length) except -1
    cdef _begin_tls(self)
    cdef _feed_decrypted(self, list pieces, packet, list out)
    cdef bint _is_all_decrypted(self) except -1
    cdef int64_t _encrypted_bytes(self) except? -1
    @cython.locals(quick=QuickSession, framer=Framer, data=bytes, at=Py_ssize_t, end=Py_ssize_t, taken=Py_ssize_t, frame=Frame, rest=Chunk)
    cdef _span_quickly(self, int side, Chunk chunk, now, list out)
    @cython.locals(framer=Framer, chunk=Chunk, size=Py_ssize_t)
    cdef _frame(self, int side, piece, packet, list out)
    cdef bint _reports_faults(self) except -1
    @cython.locals(found=list)
    cdef _pair(self, int side, events, packet, bint reports_faults, list out)
    @cython.locals(first=Framer, second=Framer, held=int64_t)
    cdef _count_held(self)
    cdef _count(self, int side, int64_t length)
    cpdef list close(self, packet, bint cut, bint evicted=*)
    @cython.locals(framer=Framer, out=list, side=cython.int)
    cdef list _flush(self, int64_t packet, str reason)
    @cython.locals(first=Framer, second=Framer)
    cdef bint _holds_frames(self) except -1

cpdef list recognised_in_order(events)
