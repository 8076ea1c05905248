cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class JsonText:
    cdef unsigned char* _text
    cdef Py_ssize_t _used
    cdef Py_ssize_t _room

    cdef int _reserve(self, Py_ssize_t more) except -1
    cdef int _escaped(self, unsigned int code) except -1
    cdef int _base64(self, const unsigned char* data, Py_ssize_t size, const unsigned char* letters) except -1
    cpdef Py_ssize_t size(self) noexcept
    cpdef cut(self, Py_ssize_t size)
    cpdef bytes since(self, Py_ssize_t size)
    cpdef bint is_since(self, Py_ssize_t size, bytes text) noexcept
    cpdef int move(self, Py_ssize_t start, Py_ssize_t to) except -1
    cpdef bytes take(self)
    cpdef int put(self, bytes text) except -1
    cpdef int add(self, JsonText other) except -1
    cpdef int part(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef int number(self, int64_t value) except -1
    cpdef int digits(self, int64_t value, Py_ssize_t count) except -1
    cpdef int fixed(self, int64_t value, Py_ssize_t count) except -1
    cpdef int text(self, str text) except -1
    cpdef int fill(self, Py_ssize_t start, Py_ssize_t count, bint before) except -1
    cpdef int trim(self) except -1
    cpdef bint string(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef int base64(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef int hexadecimal(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef int uuid(self, bytes data, Py_ssize_t start) except -1
