cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.names cimport TopicNames
from kdissect.parts.packed cimport PackedNumbers
from kdissect.session.briefs cimport Brief

cdef int64_t _AT_THE_END

@cython.locals(
    out=PackedNumbers, passed=Py_ssize_t, many=Py_ssize_t, place=Py_ssize_t, count=Py_ssize_t, number=int64_t,
    other=int64_t, packet=int64_t,
)
cpdef PackedNumbers true_numbers(PackedNumbers own, PackedNumbers others, int64_t first)
@cython.locals(
    brief=Brief, exchange=Exchange, learned=Py_ssize_t, count=Py_ssize_t, at=Py_ssize_t, packet=int64_t,
)
cpdef number_events(
    list events, PackedNumbers steps, int64_t before, PackedNumbers numbers, PackedNumbers connections, TopicNames names,
    Py_ssize_t known, list learned_names,
)
cpdef bint speak_tls(list events) except -1
