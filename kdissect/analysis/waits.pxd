cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.protocol.survey cimport Survey
from kdissect.session.briefs cimport Brief

cdef tuple _known
cpdef split(Exchange exchange)
@cython.locals(turn=int64_t, served=int64_t)
cpdef split_brief(Brief brief)
cdef _split(str waits, turn, served, Exchange exchange, Brief brief)
@cython.locals(data=bytes)
cpdef tuple asked_wait(Message request)
cdef tuple _asked_wait_in_brief(Brief brief)
cdef tuple _wait_in(bytes data)
@cython.locals(seen=Survey)
cdef bint _has_reason(Exchange exchange, Message response, least) except -1
@cython.locals(exchange=Exchange, seen=Survey)
cdef bint _has_reason_in_brief(Brief brief, least) except -1
cdef _reason_seen(Survey seen, struct, Py_ssize_t size, least)
