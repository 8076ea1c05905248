cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Segment
from kdissect.tcp.clocks cimport is_halt, own_time_ns, passed_for_both
from kdissect.tcp.reassembly cimport Reassembler, reassembler_of

cdef int FIN, RST, SYN
cdef int64_t _LONG_NS, _MILLISECOND, _MOST_MS, _NOWHERE, _PAUSE_NS, _UNDECIDED

@cython.final
cdef class Duplex:
    cdef public object _backlogs
    cdef public object _limit
    cdef public int64_t _queued_cost
    cdef public tuple endpoints
    cdef public bint first_is_other
    cdef public int _clocks_due
    cdef public object first_ns
    cdef public int64_t held_bytes
    cdef public int64_t last_ns
    cdef public int64_t last_packet
    cdef public int64_t packets
    cdef public bint reset
    cdef public object reset_side
    cdef public object closed_side
    cdef public object closed_ns
    cdef public object syns
    cdef public object _syn_ns
    cdef public tuple streams
    cdef public tuple _pause
    cdef public list clock_halts

    @cython.locals(first=bytes, other=bytes)
    cpdef begin(self, Segment segment, limits)
    @cython.locals(first=Reassembler, second=Reassembler)
    cpdef bint is_finished(self) except -1
    @cython.locals(first=Reassembler, second=Reassembler)
    cpdef bint has_fin(self) except -1
    @cython.locals(
        flags=cython.int, side=cython.int, window=cython.int, ours=Reassembler, theirs=Reassembler, timestamp_ns=int64_t, packet=int64_t,
    )
    cpdef feed(self, Segment segment)
    @cython.locals(
        ours=Reassembler, from_ns=int64_t, to_ns=int64_t, before_ns=int64_t, pause_ns=int64_t, passed_ns=int64_t,
    )
    cdef _read_clock(self, int side, int64_t clock, int64_t timestamp_ns, bint is_told)
    cdef _note_flags(self, int side, int flags, int64_t timestamp_ns)
    cdef _hold(self, int side, pieces)
    cdef _claim(self, Segment segment, Reassembler theirs)
    @cython.locals(out=list)
    cdef list _release(self, bint final=*)
    @cython.locals(side=cython.int, other=Reassembler)
    cdef _next_side(self, tuple backlogs, bint final)
    cdef _delivered_offset(self, tuple backlogs, int side)
    @cython.locals(first=Reassembler, second=Reassembler)
    cpdef close(self)
    @cython.locals(ours=Reassembler, theirs=Reassembler, heard=int64_t, most=int64_t)
    cpdef bint take(
        self, int64_t packet, int64_t timestamp_ns, int side, int64_t seq, int64_t ack, int window, int64_t identity,
        bytes data, int64_t start, int64_t length, bint is_end, int64_t clock,
    ) except -1

cdef int64_t _cost(piece) except -1
@cython.locals(made=Duplex)
cpdef Duplex duplex_of(tuple parts)
