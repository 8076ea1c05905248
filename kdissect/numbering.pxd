cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.names cimport TopicNames
from kdissect.session.briefs cimport Brief, PairLayout
from kdissect.session.conversation cimport recognised_in_order
from kdissect.session.pairing cimport Completed, Recognised

cdef int64_t _AT_THE_END

cdef class Numbering:
    cdef public int64_t connections
    cdef public int64_t exchanges

    cpdef connection(self, packet)
    cpdef exchange(self, begun)

@cython.final
cdef class EventPublisher:
    cdef bint _embedded
    cdef Py_ssize_t _most_names
    cdef public bint has_published_briefs
    cdef public TopicNames names
    cdef public bint names_are_complete
    cdef public int64_t names_left_out
    cdef public Numbering numbering

    @cython.locals(out=list, begun=Recognised, completed=Completed, exchange=Exchange, brief=Brief)
    cpdef list publish(self, list step)
    cdef _number(self, Brief brief)
    @cython.locals(form=PairLayout)
    cdef _learn_brief(self, Brief brief)
    cdef _close_brief(self, Brief brief)
    cdef _learn(self, Exchange exchange)
    cdef _learn_all(self, taught)
