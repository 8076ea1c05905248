cimport cython
from libc.stdint cimport int64_t
from kdissect.record.messages cimport Contents, contents_of
from kdissect.record.records cimport Columns

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Budget:
    cdef public int64_t bytes
    cdef public int64_t elements

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Batch:
    cdef public int64_t position
    cdef public int64_t size
    cdef public int magic
    cdef public int attributes
    cdef public int64_t last_offset
    cdef public object base_timestamp
    cdef public int64_t max_timestamp
    cdef public int64_t producer_id
    cdef public int producer_epoch
    cdef public int64_t base_sequence
    cdef public int64_t partition_leader_epoch
    cdef public int64_t crc
    cdef public object crc_valid
    cdef public bint partial
    cdef public int64_t header_offset
    cdef public int64_t header_count
    cdef public bytes _data
    cdef public object _limits
    cdef public Budget _budget
    cdef public list _faults
    cdef public object _bytes_granted
    cdef public object _elements_granted
    cdef public bint _is_told
    cdef public object _inner

    cpdef list records(self)
    cpdef Columns columns(self)
    cpdef check(self)
    cpdef object _limit(self)
    cpdef _told(self, int64_t elements, list faults)
    cpdef bint _is_wrapper(self) except -1
    @cython.locals(contents=Contents, faults=list, found=Columns, limit=int64_t)
    cpdef Columns _read_message(self)
    @cython.locals(faults=list, source=bytes, position=int64_t, end=int64_t, cut=cython.bint)
    cpdef Columns _read_batch(self, bint keep, bint as_stored=*)
