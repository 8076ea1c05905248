cimport cython
from libc.stdint cimport int64_t
from kdissect.record.batch cimport Batch
from kdissect.record.sets cimport RecordSet, read_record_set

@cython.final
cdef class Batches:
    cdef public int64_t batches
    cdef public int64_t records
    cdef public int64_t uncounted
    cdef public int64_t control
    cdef public int64_t partial
    cdef public int64_t corrupt
    cdef public int64_t set_bytes
    cdef public int64_t batch_bytes
    cdef public object smallest
    cdef public object largest
    cdef public set codecs
    cdef public object end

    @cython.locals(found=RecordSet, batch=Batch)
    cpdef add(self, bytes data, limits)
    cpdef merge(self, Batches later)
