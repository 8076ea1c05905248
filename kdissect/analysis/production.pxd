cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.counters cimport Grades, Span
from kdissect.analysis.headers cimport Header
from kdissect.analysis.histogram cimport Histogram
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef int64_t _SAMPLED_BYTES

@cython.final
cdef class Sampled:
    cdef public int64_t bytes
    cdef public int64_t before
    cdef public int64_t after

    cpdef merge(self, Sampled later)

cdef class Production:
    cdef public int64_t requests
    cdef public int64_t batches
    cdef public int64_t records
    cdef public int64_t bytes
    cdef public Histogram sizes
    cdef public Histogram counts
    cdef public set codecs
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
    cdef public object epoch
    cdef public object sent
    cdef public bint counted

    cpdef merge(self, Production later)
    cpdef count(self, Exchange exchange, Header batch, code, ns, bint is_first)

@cython.locals(response=Message)
cpdef keep(Production row, Exchange exchange, place, Header batch, code, ns, acks)
@cython.locals(
    start=int64_t, end=int64_t, at=int64_t, shift=cython.int, part=int64_t, size=int64_t, body=int64_t
)
cpdef first_record(bytes data, Header batch)
@cython.locals(found=Sampled, start=int64_t, end=int64_t)
cpdef sample(Production row, bytes data, Header batch, limits)
cpdef fit(value)
