cimport cython
from libc.stdint cimport int64_t
from kdissect.capture.runs cimport PacketRun
from kdissect.capture.segments cimport SegmentReader
from kdissect.exchange cimport Exchange
from kdissect.model cimport Packet, Segment
from kdissect.session.briefs cimport Brief
from kdissect.session.conversation cimport Conversation
from kdissect.session.lanes cimport Lane, LaneTable
from kdissect.session.quick cimport PairLayouts
from kdissect.numbering cimport EventPublisher

cdef int64_t _LINGER_NS, _NEVER
cdef bytes _NO_BYTES
cdef Py_ssize_t _PART_BYTES

cdef class Journal:
    cdef public int64_t now

    cpdef tick(self, int64_t packet, int64_t timestamp_ns)
    cpdef bint is_set_aside(self, Segment segment) except -1
    cpdef note_events(self, Py_ssize_t events)

@cython.final
cdef class Dissector:
    cdef public object _limits
    cdef public int64_t _most_waiting
    cdef public object _listener
    cdef public PairLayouts forms
    cdef public bint _adds_tcp
    cdef public dict _awaited
    cdef public object _awaiting
    cdef public bint _has_reported_secrets
    cdef public object _ports
    cdef public object secrets
    cdef public SegmentReader _segments
    cdef public dict _table
    cdef public dict _closed
    cdef public object _tunnelled
    cdef public object _reopened
    cdef public object resting
    cdef public dict _older
    cdef public int64_t _remembered
    cdef public LaneTable _lanes
    cdef list _step
    cdef public bint _uses_lanes
    cdef public object _lingering
    cdef public int64_t _lingers_since
    cdef int64_t _latest_lingers_since
    cdef public int64_t _waits
    cdef public int64_t _held_bytes
    cdef public int64_t _most_held
    cdef public list _late
    cdef public int64_t _late_bytes
    cdef public EventPublisher _publisher
    cdef public int64_t packets
    cdef public Journal journal
    cdef object __weakref__

    cpdef feed(self, item)
    @cython.locals(
        segments=SegmentReader, data=bytes, raw="const unsigned char*", link_type=cython.int, place=Py_ssize_t, lane=Lane,
        payload=bytes, length=Py_ssize_t, known=Py_ssize_t,
    )
    cdef Py_ssize_t _take_run(self, PacketRun run, Py_ssize_t size, list out) except -1
    @cython.locals(
        segments=SegmentReader, data=bytes, raw="const unsigned char*", place=Py_ssize_t, lane=Lane, known=Py_ssize_t,
    )
    cdef Py_ssize_t _take(self, Packet packet, Py_ssize_t size, list out) except -1
    cdef Py_ssize_t _take_long(self, Packet packet, bytes ends, Py_ssize_t size, list out) except -1
    @cython.locals(conversation=Conversation, segment=Segment)
    cdef Py_ssize_t _feed_packet(self, Packet packet, bytes ends, Py_ssize_t size, list out) except -1
    @cython.locals(conversation=Conversation, step=list, found=list)
    cdef Py_ssize_t _take_short(
        self, Lane lane, int64_t packet, int64_t timestamp_ns, bytes data, Py_ssize_t size, list out
    ) except -2
    @cython.locals(silent_ns=int64_t)
    cdef bint _has_lingered(self, int64_t now_ns) except -1
    cdef _wait_for(self, Conversation conversation, int64_t since_ns)
    @cython.locals(conversation=Conversation, before=Py_ssize_t)
    cdef _forget_lingering(self, int64_t now_ns, list step)
    cdef _forget(self, Conversation conversation, list step)
    cdef _sum_up(self, Conversation conversation, end, list step)
    cdef _close_late(self, Conversation conversation, list step)
    cdef _remove(self, Conversation conversation)
    @cython.locals(told=list)
    cdef list _publish(self, list step)
    cdef list _close_step(self, Conversation conversation, int64_t packet, list step)
    @cython.locals(held=int64_t, before=int64_t)
    cdef _count_held(self, Conversation conversation)
    @cython.locals(conversation=Conversation, step=list, key=tuple, flags=cython.int, timestamp_ns=int64_t, was_over=cython.bint, found=list, before=Conversation, newest=Conversation)
    cdef list _feed_segment(self, Segment segment)

@cython.locals(brief=Brief, exchange=Exchange)
cdef Py_ssize_t _append(list events, Py_ssize_t size, list out) except -1
