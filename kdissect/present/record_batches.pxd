cimport cython
from kdissect.record.records cimport Columns

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class PlainBatch:
    cdef public Columns columns
    cdef public dict common
    cdef public object assigned
