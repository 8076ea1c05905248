cimport cython
from libc.stdint cimport int64_t

cdef class Way
cdef class Step

@cython.final
cdef class Way:
    cdef public list steps
    cdef public list tags
    cdef public bint is_flexible
    cdef public bint is_ordered
    cdef public bint hides_unknown

@cython.final
cdef class Step:
    cdef public int opcode
    cdef public bytes before
    cdef public bytes plain_before
    cdef public bytes size_before
    cdef public bint nullable
    cdef public int64_t least
    cdef public Way inner
    cdef public Step element
    cdef public bytes word
    cdef public int64_t mark
    cdef public bint is_anchor
    cdef public int64_t tag
    cdef public int rank
    cdef public int anchor
    cdef public bytes default
