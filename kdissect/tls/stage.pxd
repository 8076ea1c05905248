from libc.stdint cimport int64_t

cdef class TlsStage:
    cpdef Py_ssize_t take(
        self, int side, int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, Py_ssize_t start,
        Py_ssize_t length, list out,
    ) except -1
    cpdef bint passes_over(self) except -1
    cpdef bint is_waiting(self) except -1
    cpdef int64_t kept(self) except -1
