cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.histogram cimport Histogram

cdef int64_t _ONE
cdef int _MOST_SLICES

cdef class SlicedAlike
cdef class _AlikeSlice

@cython.final
cdef class Sums:
    cdef public int64_t count
    cdef public int64_t total

    cpdef merge(self, Sums other)

cdef class Sliced:
    cdef public dict slices
    cdef public int shift
    cdef bint _is_empty
    cdef int64_t _first_ns
    cdef int64_t _last_ns
    cdef object _now
    cdef int64_t _from_ns
    cdef int64_t _up_to_ns

    cdef bint _is_at(self, int64_t ns) noexcept
    @cython.locals(length=int64_t)
    cdef int64_t _go_to(self, int64_t ns) except? -1
    @cython.locals(shift=cython.int)
    cdef _reach(self, int64_t first_ns, int64_t last_ns)
    @cython.locals(narrow=dict, wide=dict, number=int64_t)
    cdef _widen(self, int shift)
    cdef int _cover(self, Sliced later) except -1

@cython.final
cdef class SlicedSums(Sliced):
    @cython.locals(number=int64_t, now=Sums)
    cpdef add(self, int64_t ns, int64_t total, int64_t count=*)
    @cython.locals(shift=cython.int, number=int64_t, each=Sums)
    cpdef merge(self, SlicedSums later)
    @cython.locals(shift=cython.int, number=int64_t, each=_AlikeSlice)
    cpdef merge_alike(self, SlicedAlike later, int64_t total, int64_t count)
    @cython.locals(shift=cython.int, number=int64_t, each=_AlikeSlice)
    cpdef merge_errors(self, SlicedAlike later)
    @cython.locals(mine=Sums)
    cdef _put(self, int64_t number, int64_t count, int64_t total)
    @cython.locals(each=Sums, count=int64_t, total=int64_t)
    cdef tuple _sum_up(self)

@cython.locals(sums=SlicedSums, durations=SlicedTimes)
cpdef count_each(list requests, list errors, list times, int64_t ns, bint has_errors, broker_ns)

@cython.final
cdef class _AlikeSlice:
    cdef public Histogram broker
    cdef public int64_t count
    cdef public int64_t errors
    cdef public Histogram network

    cpdef merge(self, _AlikeSlice other)

@cython.final
cdef class SlicedAlike(Sliced):
    @cython.locals(number=int64_t, now=_AlikeSlice)
    cpdef add(self, int64_t ns, bint has_errors, broker_ns, network_ns)

@cython.final
cdef class SlicedTimes(Sliced):
    @cython.locals(number=int64_t, now=Histogram)
    cpdef add(self, int64_t ns, duration_ns)
    @cython.locals(shift=cython.int, number=int64_t, each=Histogram)
    cpdef merge(self, SlicedTimes later)
    @cython.locals(shift=cython.int, number=int64_t, each=_AlikeSlice)
    cpdef merge_broker(self, SlicedAlike later)
    @cython.locals(shift=cython.int, number=int64_t, each=_AlikeSlice)
    cpdef merge_network(self, SlicedAlike later)
    @cython.locals(mine=Histogram)
    cdef _put(self, int64_t number, Histogram times)
