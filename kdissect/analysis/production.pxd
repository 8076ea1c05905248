cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Grades, Span
from kdissect.analysis.headers cimport Header
from kdissect.analysis.histogram cimport Histogram
from kdissect.analysis.labels cimport Labels
from kdissect.analysis.room cimport Room
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.shared_parts cimport SharedSet, follows_log, record_sets
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.protocol.survey cimport Survey

cdef int64_t _SAMPLED_BYTES, _MILLISECOND, _MOST_MS, _AHEAD_MS
cdef int _WIDTH, _CODEC_BITS

@cython.final
cdef class Sampled:
    cdef public int64_t bytes
    cdef public int64_t before
    cdef public int64_t after

    cpdef merge(self, Sampled later)

@cython.final
cdef class Production:
    cdef int64_t _codecs
    cdef int64_t _epoch
    cdef int64_t _epoch_exchange
    cdef int64_t _epoch_ns
    cdef bint _has_epoch
    cdef public int64_t requests
    cdef public int64_t batches
    cdef public int64_t records
    cdef public int64_t bytes
    cdef public Histogram sizes
    cdef public Histogram counts
    cdef public Sampled plain
    cdef public Sampled packed
    cdef public set acks
    cdef public int64_t transactional
    cdef public Histogram linger
    cdef public Histogram skew
    cdef public int64_t ahead
    cdef public Grades errors
    cdef public set error_names
    cdef public Span span
    cdef public object sent
    cdef public bint counted

    cpdef merge(self, Production later)
    cpdef count(self, Exchange exchange, Header batch, int64_t code, int64_t ns, bint is_first)
    cdef _see_epoch(self, int64_t ns, int64_t exchange, int64_t epoch)
    @cython.locals(ahead_ms=int64_t)
    cdef _count_times(self, int64_t first_ms, int64_t last_ms, int64_t ns)
    cdef _count_absurd_times(self, first_ms, last_ms, ns)

@cython.final
cdef class FetchedCodecs:
    cdef public object runs

    cpdef bint add(self, int64_t first, int64_t last, int64_t codec) except -1
    cpdef merge(self, FetchedCodecs later)

@cython.final
cdef class KeptBatches:
    cdef int64_t _most
    cdef int64_t _most_of_one
    cdef int64_t _most_partitions
    cdef public int64_t count
    cdef public dict fetched
    cdef public int64_t left_out
    cdef public object limits
    cdef public Room room

    @cython.locals(is_beyond=bint)
    cpdef bint has_room(self, int64_t size, int64_t count) except -1
    cpdef FetchedCodecs codecs_of(self, tuple key)
    cpdef add_run(self, FetchedCodecs found, int64_t first, int64_t last, int64_t way)
    cpdef merge(self, KeptBatches later)

@cython.locals(exchange=Exchange)
cpdef take_in(list exchanges, bint counts, clusters, Labels labels, Rows rows, KeptBatches kept, see_no_more)
@cython.locals(
    request=Message, seen=Survey, ns=int64_t, begun=set, found=SharedSet, batch=Header, row=Production,
    code=int64_t, is_first=bint, answers=dict,
)
cdef _take_produced(Exchange exchange, bint counts, broker, Labels labels, Rows rows, KeptBatches kept)
cdef dict _answers(Exchange exchange)
@cython.locals(each=SharedSet, batches=list, batch=Header, found=FetchedCodecs, first=int64_t, key=tuple)
cdef _take_fetched(Exchange exchange, broker, Labels labels, KeptBatches kept)

@cython.locals(response=Message)
cdef keep(Production row, Exchange exchange, SharedSet found, Header batch, int64_t code, int64_t ns, acks, broker)
@cython.locals(
    start=int64_t, end=int64_t, at=int64_t, shift=cython.int, part=int64_t, size=int64_t, body=int64_t
)
cpdef int64_t first_record(bytes data, Header batch) except? -2
@cython.locals(found=Sampled, start=int64_t, end=int64_t)
cpdef sample(Production row, bytes data, Header batch, limits)
cpdef fit(value)
cpdef int64_t way_of(Header batch) noexcept
