cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.batches cimport Batches
from kdissect.analysis.headers cimport Header
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.protocol.layout cimport Layout
from kdissect.protocol.survey cimport Survey

cdef int _MAGIC_AT
cdef Batches _NO_BATCHES
cdef list _NO_HEADERS

@cython.final
cdef class SharedSet:
    cdef public object place
    cdef public object limits
    cdef Batches _batches
    cdef list _headers
    cdef list _merged
    cdef bint _is_assigned
    cdef object _offset

    cpdef assigned_offset(self, Exchange exchange)

@cython.final
@cython.freelist(128)
cdef class SharedParts:
    cdef public object limits
    cdef public list sets
    cdef public object split
    cdef public list topics
    cdef public object replica_id
    cdef public object answer
    cdef public list errors
    cdef public object error_class
    cdef public int follows_log

@cython.locals(exchange=Exchange, parts=SharedParts)
cpdef share(list exchanges)
@cython.locals(exchange=Exchange)
cpdef unshare(list exchanges)
@cython.locals(exchange=Exchange, at=Py_ssize_t, places=dict, known=Layout, found=list)
cpdef dict by_api(list exchanges)
@cython.locals(last=Exchange, exchange=Exchange, message=Message, its=int64_t)
cpdef tuple latest_in(exchanges, int64_t packet, int64_t ns)
@cython.locals(exchange=Exchange, message=Message, found=list)
cpdef list of_api_keys(exchanges, tuple keys)
@cython.locals(shared=SharedParts, found=list)
cpdef list record_sets(Exchange exchange, limits)
@cython.locals(each=SharedSet, batch=Header, out=list)
cpdef list produced_ends(Exchange exchange, limits)
@cython.locals(shared=SharedParts, found=list)
cpdef list topics_of(Exchange exchange)
@cython.locals(shared=SharedParts)
cpdef answer_bytes(Exchange exchange, Message response)
@cython.locals(shared=SharedParts, found=list)
cpdef list errors_of(Exchange exchange)
@cython.locals(shared=SharedParts)
cpdef error_class_of(Exchange exchange)
@cython.locals(shared=SharedParts)
cpdef bint follows_log(Exchange exchange) except -1
@cython.locals(request=Message, response=Message, asked=Survey, answered=Survey)
cdef bint _follows_log(Exchange exchange) except -1
cdef bint _are_of_log(list mentions) except -1
cdef list _errors(Exchange exchange)
@cython.locals(found=list, each=SharedSet)
cdef list _find(Exchange exchange, limits)
cdef bint _may_have_sets(Message message) except -1
