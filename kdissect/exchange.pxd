cimport cython
from libc.stdint cimport int64_t
from kdissect.message cimport Message, Request
from kdissect.protocol.layout cimport Layout
from kdissect.protocol.survey cimport Route, Survey, places_at
from kdissect.record.sound cimport is_sound, may_have_value

cdef bytes _topic_record_start

@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class Exchange:
    cdef public object connection
    cdef public object client_endpoint
    cdef public object broker_endpoint
    cdef public Message request
    cdef public Message response
    cdef public object missing
    cdef public object inferred
    cdef public object number
    cdef public object recognised
    cdef public list session_faults
    cdef public object topic_names
    cdef public bint embedded
    cdef public bint is_encrypted
    cdef public object proxied
    cdef public object principal
    cdef public tuple routine
    cdef public object behind_ns
    cdef public object behind_correlation_id
    cdef public object network_ns
    cdef public object throttle_ns
    cdef public object think_ns
    cdef public object after_api_key
    cdef public bint breaks_quota
    cdef public object seen
    cdef public object shared
    cdef public tuple _faults
    cdef public dict _base_offsets
    cdef public object _client
    cdef public object _broker

    cpdef _client_address(self)
    cpdef _broker_address(self)
    @cython.locals(known=Layout)
    cpdef _api(self)
    @cython.locals(sent=Request)
    cpdef _client_id(self)
    cpdef int64_t _begun(self) except? -1
    cpdef int64_t _ended(self) except? -1
    cpdef _latency(self)
    cpdef _turn(self)
    cpdef _served(self)
    @cython.locals(seen=Survey)
    cpdef _error(self)
    @cython.locals(seen=Survey)
    cpdef list codes(self)
    cpdef assigned_base_offset(self, place)
    cpdef int64_t _last(self) except -1
    cpdef tuple _both(self)
    @cython.locals(size=Py_ssize_t)
    cpdef Py_ssize_t size(self) except -1
    cpdef Message _first(self)
    @cython.locals(message=Message, out=list, known=Layout, seen=Survey)
    cpdef taught_topics(self)
    @cython.locals(message=Message, seen=Survey)
    cpdef bint may_carry_metadata(self) except -1
    @cython.locals(message=Message, found=list, seen=Survey)
    cpdef list _topic_mentions(self)
    @cython.locals(message=Message, seen=Survey, found=list)
    cdef list _named(self, entity)
    @cython.locals(seen=Survey)
    cdef _coordinators(self)
    @cython.locals(message=Message, found=list)
    cdef tuple _find_faults(self, bint unpacks)
    @cython.locals(message=Message, seen=Survey, places=list, at=Py_ssize_t)
    cdef bint _is_sound(self, tuple messages, bint unpacks) except -1
    cpdef _place(self, Message message, name, bytes value, topic, topic_id, partition)

cdef tuple _NOT_RECOGNISED

cdef _between(Message message)
cdef _from_to(int64_t first_ns, int64_t last_ns)

@cython.locals(exchange=Exchange)
cpdef Exchange begin_exchange(connection, client_endpoint, broker_endpoint)
@cython.locals(seen=Survey)
cdef bint _may_name_topics(Message message) except -1
@cython.locals(places=list, at=Py_ssize_t)
cpdef bint may_name_topics(bytes data, Survey seen, limits) except -1
cpdef bint names_topics(bytes data, Py_ssize_t start, Py_ssize_t end, limits) except -1
@cython.locals(way=Route, data=bytes)
cdef list _places(Message message)
@cython.locals(found=dict, places=list)
cdef dict _base_offsets(Message response)
@cython.locals(found=dict)
cpdef dict base_offsets_in(list places)
cpdef base_offset_of(dict found, topic, topic_id, partition)
