cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.histogram cimport Histogram
from kdissect.analysis.quotas cimport Quota
from kdissect.analysis.rows cimport Rows
from kdissect.analysis.waits cimport served_in_brief, split, waited_in_brief
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.session.briefs cimport Brief, PairLayout
from kdissect.session.throttling cimport told_ms

cdef int64_t _NOT_KNOWN
cdef object _NONE, _WAITED_OUT

cdef class _ServiceTimes:
    cdef public Histogram latency
    cdef public int64_t may_wait
    cdef public Quota quota
    cdef public int64_t throttle_max_ms
    cdef public int64_t throttle_ms
    cdef public int64_t throttled
    cdef public int64_t unanswered
    cdef public int64_t waited_out
    cdef public Histogram work

    @cython.locals(response=Message, throttle=int64_t)
    cpdef add(self, Exchange exchange)
    @cython.locals(throttle=int64_t, waited=int64_t, served=int64_t)
    cpdef add_brief(self, Brief brief)
    cdef _answered(self, bint may_wait, bint waited_out, int64_t throttle)

@cython.locals(brief=Brief, form=PairLayout, row=_ServiceTimes)
cdef _count_briefs(list briefs, dict known, Rows rows)
