cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.session.briefs cimport Brief

@cython.locals(
    exchange=int64_t, packet=int64_t, connection=int64_t, at=Py_ssize_t, count=Py_ssize_t, whole=Exchange, brief=Brief
)
cpdef Py_ssize_t first_beyond(events, Py_ssize_t begin, tuple ends) except -2
