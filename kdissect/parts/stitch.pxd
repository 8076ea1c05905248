cimport cython
from libc.stdint cimport int64_t
from kdissect.dissect cimport Dissector
from kdissect.parts.journal cimport SeamJournal
from kdissect.parts.packed cimport PackedNumbers
from kdissect.parts.ticks cimport Ticks
from kdissect.numbering cimport Numbering

cdef class Stitcher:
    cdef Dissector _dissector
    cdef object _limits

    @cython.locals(
        dissector=Dissector, numbering=Numbering, exchanges=int64_t, connections=int64_t, known=Py_ssize_t, learned=_Learned,
        journal=SeamJournal, recognised=PackedNumbers, firsts=PackedNumbers, events=list, own_exchanges=Py_ssize_t,
        own_connections=Py_ssize_t, every_exchange=PackedNumbers, every_connection=PackedNumbers, most_exchanges=Py_ssize_t,
        most_connections=Py_ssize_t, step=int64_t, exchanges_before=int64_t, connections_before=int64_t,
        names_before=Py_ssize_t,
    )
    cpdef take(self, edge)

@cython.final
cdef class _Expiries:
    cdef Dissector _dissector
    cdef Ticks _ticks
    cdef object _since_ns
    cdef tuple _next

    cdef before(self, packet)

@cython.final
cdef class _Learned:
    cdef public list all
    cdef object _own
    cdef Py_ssize_t _at

    @cython.locals(known=Py_ssize_t)
    cdef up_to(self, step, Dissector dissector)
    @cython.locals(order=list)
    cdef note(self, step, Py_ssize_t known, Dissector dissector)
