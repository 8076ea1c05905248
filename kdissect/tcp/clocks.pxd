cimport cython
from libc.stdint cimport int64_t

cdef int64_t _DRIFT, _MISCOUNTED, _MOST_TICKS, _SLACK_NS, _TICK_NS, _UNDECIDED

@cython.locals(passed_ns=int64_t, slack_ns=int64_t)
cpdef int64_t own_time_ns(int64_t ticks, int64_t before_ns, int64_t pause_ns, int64_t after_ns) except? -3
@cython.locals(whole_us=int64_t, tick_us=int64_t)
cdef bint _counts_longer_ticks(int64_t ticks, int64_t before_ns, int64_t pause_ns, int64_t after_ns, int64_t slack_ns) except -1
cdef int64_t _slack_ns(int64_t before_ns) except -1
cpdef bint passed_for_both(int64_t passed_ns, int64_t pause_ns, int64_t before_ns) except -1
@cython.locals(most_ns=int64_t)
cpdef bint is_halt(int64_t passed_ns, int64_t pause_ns, int64_t before_ns, int64_t unmeasured_ns) except -1
