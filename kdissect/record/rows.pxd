cimport cython

@cython.final
cdef class Int64Rows:
    cdef long long* numbers
    cdef Py_ssize_t _room

    cpdef int reserve(self, Py_ssize_t count) except -1
    cpdef object part(self, Py_ssize_t start, Py_ssize_t end)
