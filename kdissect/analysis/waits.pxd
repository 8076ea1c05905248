cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message, Request
from kdissect.protocol.survey cimport Survey
from kdissect.session.briefs cimport Brief, PairLayout

cdef int64_t _MILLISECOND, _NOT_KNOWN

cdef tuple _known
cdef dict _waits
cdef object _defined
cpdef bint is_long_poll_of(Exchange exchange) except -1
cpdef split(Exchange exchange)
cdef _waits_of(api_key)
@cython.locals(request=Message, response=Message)
cdef _split(str waits, turn, served, Exchange exchange)
@cython.locals(form=PairLayout, at=Py_ssize_t, longest=int64_t, least=int64_t, asked_ns=int64_t)
cpdef int64_t waited_in_brief(Brief brief) except? -2
cpdef int64_t turn_in_brief(Brief brief) except? -2
@cython.locals(turn=int64_t)
cpdef int64_t served_in_brief(Brief brief) except? -2
@cython.locals(data=bytes, at=Py_ssize_t)
cpdef tuple asked_wait(Message request)
@cython.locals(seen=Survey)
cdef bint _has_reason(Exchange exchange, Message response, least) except -1
@cython.locals(exchange=Exchange, seen=Survey)
cdef bint _has_reason_in_brief(Brief brief, int64_t least) except -1
@cython.locals(records=list, at=Py_ssize_t, held=int64_t)
cdef bint _reason_seen(Survey seen, int64_t least) except -1
@cython.locals(high=int64_t)
cdef int64_t _int32(const unsigned char* raw, Py_ssize_t at) noexcept
