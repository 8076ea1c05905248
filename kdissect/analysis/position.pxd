cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.batches cimport Batches
from kdissect.analysis.counters cimport Grades, Span

@cython.final
cdef class Position:
    cdef public int64_t fetches
    cdef public bint counts
    cdef public object since
    cdef public object touched
    cdef public int64_t named
    cdef public object position
    cdef public object high_watermark
    cdef public object last_stable_offset
    cdef public object log_start_offset
    cdef public object max_lag
    cdef public object unplaced
    cdef public int64_t full
    cdef public Span beyond_stable
    cdef public int64_t beyond_stable_count
    cdef public object beyond
    cdef public object first_stable
    cdef public Span aborted_unnamed
    cdef public int64_t aborted_unnamed_count
    cdef public Batches batches
    cdef public Grades errors
    cdef public Span span

    cpdef take_request(self, step, offset)
    cpdef forget(self, step)
    cpdef count_fetches(self, step)
    cdef _touch(self, step)
    cpdef set_offsets(self, high, stable, start)
    cdef _resolve_beyond(self, stable)
    cdef _place(self, high)
    cpdef merge(self, Position later)
