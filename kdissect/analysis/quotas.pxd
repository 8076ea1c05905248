cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.session.briefs cimport Brief

cdef int _EMPTY_BYTES, _FETCH, _PRODUCE

@cython.final
cdef class Quota:
    cdef public object first_ns
    cdef public object last_ns
    cdef public int64_t first_size
    cdef public int64_t held_size
    cdef public int64_t size
    cdef public int64_t throttled_bytes
    cdef public int64_t throttled_ms
    cdef public object throttled_ns

    @cython.locals(request=Message, response=Message, key=cython.int, size=int64_t)
    cpdef add(self, Exchange exchange, int64_t throttle_ms)
    @cython.locals(key=cython.int, size=int64_t)
    cpdef add_brief(self, Brief brief, int64_t throttle_ms)
    cdef _fetched(self, int64_t size, int64_t throttle_ms)
    cdef _answered(self, int64_t asked_ns, int64_t ns, int64_t size, int64_t throttle_ms)
    cdef _throttle(self, ns, int64_t throttle_ms, int64_t size)
    cdef _count(self, first_ns, last_ns, int64_t size)
