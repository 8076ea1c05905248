cimport cython
from kdissect.analysis.batches cimport Batches
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef int _MAGIC_AT
cdef Batches _NO_BATCHES
cdef list _NO_HEADERS

cdef class SharedSet:
    cdef public object place
    cdef public object limits
    cdef Batches _batches
    cdef list _headers
    cdef list _merged

cdef class SharedParts:
    cdef public object limits
    cdef public list sets
    cdef public object split
    cdef public list topics
    cdef public object replica_id
    cdef public object answer
    cdef public list errors
    cdef public object error_class

@cython.locals(shared=SharedParts, found=list)
cpdef list record_sets(Exchange exchange, limits)
@cython.locals(shared=SharedParts, found=list)
cpdef list topics_of(Exchange exchange)
@cython.locals(shared=SharedParts)
cpdef answer_bytes(Exchange exchange, Message response)
@cython.locals(shared=SharedParts, found=list)
cpdef list errors_of(Exchange exchange)
@cython.locals(shared=SharedParts)
cpdef error_class_of(Exchange exchange)
cdef list _errors(Exchange exchange)
cdef list _find(Exchange exchange, limits)
