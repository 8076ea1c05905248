cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange, begin_exchange, may_name_topics, names_topics
from kdissect.message cimport Request, Response, parse_request, parse_response
from kdissect.model cimport Frame
from kdissect.names cimport TopicNames
from kdissect.protocol.layout cimport Layout, layout
from kdissect.protocol.survey cimport Route, Survey, places_at, survey_at

cdef int64_t _NOT_KNOWN

@cython.final
cdef class PairLayout:
    cdef public Layout response
    cdef public bint answers_first
    cdef public tuple api
    cdef public Layout request
    cdef public bint carries_metadata
    cdef public bint is_brief
    cdef public bint is_login
    cdef public int key
    cdef public str name
    cdef public bint teaches
    cdef public bint throttle_is_at_hand
    cdef public bint throttles
    cdef public int version
    cdef public Py_ssize_t wait_at
    cdef public str waits

@cython.freelist(64)
@cython.no_gc
@cython.final
cdef class Brief:
    cdef public list _response_places
    cdef public int64_t after_api_key
    cdef public bytes response_data
    cdef public Py_ssize_t response_body
    cdef public Py_ssize_t response_end
    cdef public int64_t response_first_ns
    cdef public Frame response_frame
    cdef public int64_t response_ns
    cdef public int64_t response_offset
    cdef public int64_t response_packet
    cdef public Survey response_survey
    cdef public Py_ssize_t response_start
    cdef public bytes request_data
    cdef public Py_ssize_t request_body
    cdef public Py_ssize_t request_end
    cdef public int64_t request_first_ns
    cdef public Frame request_frame
    cdef public int64_t request_ns
    cdef public int64_t request_offset
    cdef public int64_t request_packet
    cdef public Survey request_survey
    cdef public Py_ssize_t request_start
    cdef public Exchange became
    cdef public int64_t behind_id
    cdef public int64_t behind_ns
    cdef public bint breaks_quota
    cdef public str client_id
    cdef public int64_t connection
    cdef public int64_t correlation_id
    cdef public tuple ends
    cdef public PairLayout form
    cdef public bint is_behind
    cdef public bint is_encrypted
    cdef public bint is_over
    cdef public object limits
    cdef public str missing
    cdef public TopicNames names
    cdef public Py_ssize_t names_count
    cdef public int64_t network_ns
    cdef public int64_t number
    cdef public object principal
    cdef public int64_t recognised_packet
    cdef public tuple routine
    cdef public int64_t think_ns
    cdef public int64_t throttle_ms
    cdef public int64_t throttle_ns
    cdef public int64_t up_to_packet

    @cython.locals(way=Route)
    cpdef Survey survey_request(self)
    @cython.locals(way=Route)
    cpdef Survey survey_response(self)
    @cython.locals(asked=Survey, answered=Survey)
    cpdef bint has_records(self) except -1
    @cython.locals(form=PairLayout, found=list, places=list)
    cpdef list record_sets(self)
    @cython.locals(places=list)
    cpdef dict base_offsets(self)
    @cython.locals(answer=bytes)
    cdef list _places_in_response(self)
    @cython.locals(way=Route)
    cdef list _places(self, Layout known, bytes data, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(size=Py_ssize_t)
    cdef _add_sets(self, bint is_request, list places, list found)
    cpdef Py_ssize_t size(self) except -1
    cpdef int64_t _last(self) except -1
    @cython.locals(frame=Frame, payload=bytes, request=Request)
    cpdef Request request(self)
    @cython.locals(frame=Frame, payload=bytes)
    cpdef Response response(self)
    @cython.locals(exchange=Exchange)
    cpdef Exchange exchange(self)
    @cython.locals(found=list, asked=Survey, answered=Survey)
    cpdef list topics(self)
    @cython.locals(topic=str, topic_id=str, name=str)
    cdef _add_topics(self, list mentions, list found)
    @cython.locals(asked=Survey, answered=Survey, found=list)
    cpdef list named(self, str entity)
    @cython.locals(told=list)
    cdef _add_named(self, Survey seen, int coordinators, str entity, list found)
    @cython.locals(form=PairLayout, asked=Survey, answered=Survey, out=list)
    cpdef taught_topics(self)
    @cython.locals(asked=Survey, answered=Survey)
    cdef bint _has_metadata(self) except -1
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t)
    cdef bint _has_metadata_at(self, list places) except -1

@cython.locals(form=PairLayout)
cpdef tuple plain_brief(Brief brief)
@cython.locals(brief=Brief)
cpdef Brief brief_of(tuple plain, find, TopicNames names, limits)
@cython.locals(out=list)
cpdef list without_briefs(events)
@cython.locals(out=list, run=list)
cpdef list runs_of_briefs(events)
cdef bint _name_metadata(list mentions) except -1
cdef bint _is_metadata(topic, topic_id) except -1
cdef _or_none(int64_t value)
