cimport cython
from libc.stdint cimport int64_t

cpdef void put(unsigned char* raw, Py_ssize_t at, int64_t value) noexcept
@cython.locals(high=int64_t)
cpdef int64_t number(const unsigned char* raw, Py_ssize_t at) noexcept
