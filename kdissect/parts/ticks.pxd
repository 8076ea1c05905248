cimport cython
from libc.stdint cimport int64_t
from kdissect.parts.packed cimport PackedNumbers

cdef int64_t _BEFORE_ALL, _MOST_STEP, _MOST_LATER
cdef Py_ssize_t _RUN, _STEP_BYTES

@cython.final
cdef class Ticks:
    cdef public PackedNumbers _packets
    cdef public PackedNumbers _times
    cdef public PackedNumbers _places
    cdef public bytearray _steps
    cdef public Py_ssize_t _size
    cdef public Py_ssize_t _room
    cdef public Py_ssize_t _left
    cdef public int64_t _packet
    cdef public int64_t latest_ns

    @cython.locals(step=int64_t, later=int64_t, raw="unsigned char*", at=Py_ssize_t)
    cpdef add(self, int64_t packet, int64_t timestamp_ns)
    @cython.locals(
        run=Py_ssize_t, runs=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, packet=int64_t, time_ns=int64_t, silent_ns=int64_t, steps=bytearray,
        passed_ns=int64_t, later=int64_t,
    )
    cpdef later_than(self, timestamp_ns)
