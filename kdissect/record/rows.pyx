"""rows.py, compiled: the numbers are kept in memory of C."""

from array import array

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport free, realloc

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

LEAST = 56
cdef Py_ssize_t _LEAST = LEAST


cdef class Int64Rows:
    def __cinit__(self):
        self.numbers = NULL
        self._room = 0

    def __dealloc__(self):
        free(self.numbers)

    cpdef int reserve(self, Py_ssize_t count) except -1:
        cdef Py_ssize_t room
        cdef long long* grown
        if count <= self._room:
            return 0
        if count > PY_SSIZE_T_MAX // 32:
            raise MemoryError
        room = max(count, 2 * self._room, _LEAST)
        grown = <long long*> realloc(self.numbers, room * sizeof(long long))
        if grown == NULL:
            raise MemoryError
        self.numbers, self._room = grown, room
        return 0

    cpdef object part(self, Py_ssize_t start, Py_ssize_t end):
        if not 0 <= start <= end <= self._room:
            raise IndexError("numbers that are not there")
        found = array("q")
        if end > start:
            found.frombytes(PyBytes_FromStringAndSize(<char*> (self.numbers + start), 8 * (end - start)))
        return found
