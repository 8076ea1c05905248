cimport cython
from libc.stdint cimport int64_t
from kdissect.record.frames cimport unpack_frame
from kdissect.record.messages cimport Contents, unwrap
from kdissect.record.records cimport Columns
from kdissect.record.scan cimport RecordsFound, read_records

cdef int64_t _HONEST_RATIO, _NOT_YET, _MIB, _HEADER_BYTES, _CODEC_BITS, _LOG_APPEND_TIME

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Budget:
    cdef public object limits
    cdef public int64_t most_bytes
    cdef public int64_t ratio
    cdef public int64_t most_elements
    cdef public int64_t bytes
    cdef public int64_t elements

    cpdef begin(self, int64_t size)
    cdef int64_t bound(self, int64_t packed, int64_t granted) noexcept

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
    cdef public Budget _budget
    cdef public tuple _faults
    cdef public int64_t _bytes_granted
    cdef public int64_t _elements_granted
    cdef public bint _is_told
    cdef public object _inner

    cpdef begin(self, bytes data, int64_t position, Budget budget)
    cpdef list records(self)
    cpdef bint has(self, int bit) noexcept
    cpdef Columns columns(self, Columns into=*)
    cpdef check(self)
    cpdef int64_t _limit(self) except? -1
    cpdef int64_t _end(self) except -1
    cpdef _count_once(self, int64_t elements, list faults)
    @cython.locals(first=cython.bint, budget=Budget, packed=bytes, bound=int64_t, whole=bytes)
    cdef bytes _unpacked(self, int64_t start, int64_t end, list faults)
    cpdef bint _is_wrapper(self) except -1
    @cython.locals(contents=Contents, faults=list, found=Columns, limit=int64_t, end=int64_t, unpacked=bytes, before=Py_ssize_t)
    cpdef Columns _read_message(self, Columns into)
    @cython.locals(
        faults=list, source=bytes, position=int64_t, end=int64_t, cut=cython.bint, body=RecordsFound
    )
    cpdef Columns _read_batch(self, bint keep, bint as_stored, Columns into)
