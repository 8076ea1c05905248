cimport cython
from kdissect.exchange cimport Exchange
from kdissect.model cimport Segment
from kdissect.session.conversation cimport Conversation, recognised_in_order
from kdissect.session.pairing cimport Completed, Recognised

cdef class Dissector:
    cdef public object _limits
    cdef public object _embedded
    cdef public object _ports
    cdef public object secrets
    cdef public object _awaiting
    cdef public object _segments
    cdef public dict _table
    cdef public dict _closed
    cdef public object _tunnelled
    cdef public object _remembered
    cdef public list _lingering
    cdef public dict _holding
    cdef public object _held_bytes
    cdef public list _late
    cdef public object _late_bytes
    cdef public object _names_left_out
    cdef public object _numbering
    cdef public object packets
    cdef public object names
    cdef public object _names_are_complete
    cdef object __weakref__

    cpdef feed(self, item)
    cdef _count_held(self, Conversation conversation)
    @cython.locals(out=list, begun=Recognised, completed=Completed, exchange=Exchange)
    cdef list _publish(self, list step)
    cdef _learn(self, Exchange exchange)
    @cython.locals(conversation=Conversation, step=list, key=tuple, flags=cython.int, was_over=cython.bint)
    cpdef list feed_segment(self, Segment segment)
