cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.message cimport Request, Response
from kdissect.protocol.survey cimport Survey
from kdissect.session.briefs cimport Brief

cdef tuple _NONE
cdef frozenset _NOTHING
cdef object _NOT_ASKED
cdef dict _bounds

@cython.final
cdef class Expected:
    cdef public object _from_start
    cdef public set _served
    cdef public set _refused
    cdef public dict _runs

    cpdef forget_all(self)
    cpdef bint note_success(self, int api_key) except -1
    @cython.locals(codes=list)
    cpdef tuple judge(self, Exchange exchange, Request asked, Response response)
    @cython.locals(seen=Survey)
    cpdef tuple judge_brief(self, Brief brief)
    @cython.locals(found=list, out=list)
    cdef tuple _judge(self, _AnsweredExchange told, list codes)
    @cython.locals(key=tuple, now_ns=int64_t)
    cdef bint _is_within(self, int code, bound, _AnsweredExchange told) except -1
    cdef bint _has_begun(self, api_key, bound) except -1
    cdef _end_runs(self, _AnsweredExchange told, list codes)

@cython.final
cdef class _AnsweredExchange:
    cdef object _subjects
    cdef Brief _brief
    cdef Exchange _exchange
    cdef public int64_t answered_ns
    cdef public str api
    cdef public object api_key

    @cython.locals(asked=Survey)
    cdef subjects(self)
    cdef dict body(self)
    cdef list places_of(self, int code)
    cdef Exchange _whole(self)

@cython.locals(told=_AnsweredExchange)
cdef _AnsweredExchange _answered_in_brief(Brief brief)
cdef _bound_of(code)
cdef _subjects(Exchange exchange)
@cython.locals(about=set)
cdef _subjects_in_brief(int api_key, Survey asked, Survey answered)
@cython.locals(found=set)
cdef set _named_in(Survey seen, Survey asked, set about)
@cython.locals(made=Expected)
cpdef Expected expected_of(tuple parts)
