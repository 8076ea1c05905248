cimport cython
from libc.stdint cimport int64_t, uint32_t
from kdissect.model cimport Chunk, Segment
from kdissect.tcp.copies cimport Copies, copies_of
from kdissect.tcp.packed cimport number, put

cdef int FIN, RST, SYN, KEPT_BYTES
cdef Py_ssize_t _BYTES, _NUMBERS_BYTES
cdef int64_t _ROUND_TRIPS, _NOWHERE, _HALF_WAY, _LAST_NUMBER, FARTHEST_ACKNOWLEDGEMENT

@cython.final
cdef class RoundTrips:
    cdef int64_t[32] _kept
    cdef int64_t _count

    @cython.locals(at=int64_t)
    cdef bint add(self, int64_t round_trip_ns) except -1
    @cython.locals(numbers=bytearray, raw="unsigned char*", at=int64_t)
    cpdef bytearray packed(self)

@cython.final
cdef class Reassembler:
    cdef public object _limits
    cdef public int64_t _base
    cdef public bint _base_is_sure
    cdef public uint32_t clock
    cdef public object _initial
    cdef public object _initials
    cdef public object _waiting
    cdef public Copies _copies
    cdef public bytes _last_data
    cdef public int64_t _last_start
    cdef public int64_t _last_size
    cdef public int64_t _last_offset
    cdef public int64_t _last_packet
    cdef public int64_t _last_ns
    cdef public object _stray_end
    cdef public int64_t _impatience
    cdef public int64_t _overdue_since
    cdef public int64_t next
    cdef public int64_t acknowledged
    cdef public bint opened
    cdef public int64_t ended_at
    cdef public int64_t retransmitted
    cdef public int64_t copied
    cdef public bint kept
    cdef public int64_t gaps
    cdef public int64_t gap_bytes
    cdef public int64_t _timed_end
    cdef public int64_t _timed_ns
    cdef public int64_t round_trip_ns
    cdef public int64_t path_ns
    cdef public RoundTrips round_trips
    cdef public int64_t _passed
    cdef public int64_t _stride
    cdef public int64_t syn_ns
    cdef public int64_t syn_acknowledged_ns
    cdef public bytes syn_options
    cdef public int window
    cdef public uint32_t unmeasured_ms
    cdef public int64_t _zero_since_ns
    cdef public object troubles
    cdef public int64_t clock_ns

    @cython.locals(
        seq=int64_t, flags=cython.int, payload=bytes, length=Py_ssize_t, offset=int64_t, chunk=Chunk,
    )
    cpdef feed(self, Segment segment)
    @cython.locals(seq=int64_t, is_syn=bint, best=object, wanted=int64_t)
    cdef _begin(self, Segment segment)
    cpdef bint is_even(self) except -1
    cdef bint has_all(self) except -1
    cpdef append(self, int64_t packet, int64_t timestamp_ns, int64_t identity, bytes data, int64_t start, int64_t length)
    @cython.locals(before=int64_t, raw="const unsigned char*")
    cdef _keep(self, int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, int64_t start, int64_t length)
    @cython.locals(offset=int64_t, before=int64_t, round_trip_ns=int64_t)
    cpdef acknowledge(self, int64_t ack, int64_t packet, int64_t timestamp_ns, bint is_bare=*)
    cdef _note_round_trip(self, int64_t round_trip_ns)
    cpdef offer(self, int window, int64_t timestamp_ns)
    @cython.locals(distance=int64_t)
    cdef int64_t _place(self, int64_t seq) except? -1
    cdef _begin_timing(self, int64_t timestamp_ns)
    cdef _remember(self, int64_t identity, int64_t timestamp_ns)
    @cython.locals(out=list, is_copy=bint)
    cdef list _feed_slow(self, piece, int64_t identity)
    @cython.locals(out=list)
    cdef list _deliver(self, piece)
    cdef list _declare(self, int64_t packet, int64_t timestamp_ns)
    @cython.locals(out=list)
    cdef list _give_up(self, end, str reason, int64_t packet, int64_t timestamp_ns)
    cdef _gap(self, int64_t length, str reason, int64_t packet, int64_t timestamp_ns)
    cdef _compare(self, piece, list out)
    cdef bint _is_stray(self, piece) except -1
    cdef int64_t _known_end(self) except? -1
    cdef _count_again(self, int64_t length, bint is_copy)
    @cython.locals(copies=Copies, round_trips=RoundTrips, numbers=bytearray, raw="unsigned char*")
    cpdef tuple parts(self)

@cython.locals(made=Reassembler, numbers=bytearray, copies=bytearray, round_trips=bytearray, raw="const unsigned char*")
cpdef Reassembler reassembler_of(tuple parts)
@cython.locals(made=RoundTrips, raw="const unsigned char*", count=Py_ssize_t, at=Py_ssize_t)
cpdef RoundTrips round_trips_of(bytearray numbers)
