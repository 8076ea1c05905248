cimport cython
from libc.stdint cimport int64_t
from kdissect.record.batch cimport Batch, Budget
from kdissect.record.messages cimport int32_at, int64_at, message_crc
from kdissect.record.records cimport sum64

cdef int64_t _LEAST_0, _LEAST_1, _LEAST_2, _OVERHEAD, _CRC_START, _HEADER_BYTES, _SHORT, _LOW
cdef int _CODEC_BITS

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class RecordSet:
    cdef public list batches
    cdef public Py_ssize_t remainder
    cdef public list own_faults

@cython.final
@cython.no_gc
@cython.freelist(8)
cdef class BatchReader:
    cdef Budget _budget
    cdef int64_t _count
    cdef bytes _data
    cdef object _limits
    cdef public list faults
    cdef public Py_ssize_t position

    cpdef begin(self, bytes data)
    @cython.locals(data=bytes, position=Py_ssize_t, left=Py_ssize_t, partial=cython.bint)
    cpdef bint read(self, Batch batch) except -1

@cython.locals(found=RecordSet, reader=BatchReader, batch=Batch)
cpdef RecordSet read_record_set(bytes data, object limits=*)
@cython.locals(left=Py_ssize_t, size=int64_t, magic=int64_t, least=int64_t, high=int64_t, raw="const unsigned char*")
cpdef object frame_defect(bytes data, Py_ssize_t position)
@cython.locals(
    data=bytes, raw="const unsigned char*", position=int64_t, at=int64_t, size=int64_t, last_delta=int64_t
)
cdef _read_batch(Batch batch, bint partial)
@cython.locals(
    data=bytes, raw="const unsigned char*", position=int64_t, at=int64_t, size=int64_t, attributes=cython.int
)
cdef _read_message(Batch batch)
@cython.locals(value=cython.int)
cdef int _int16(const unsigned char* raw, int64_t at) noexcept
@cython.locals(raw="const unsigned char*")
cpdef int64_t checksum(bytes data, Py_ssize_t start, Py_ssize_t end) except -1
cdef _note_checksum(Batch batch, str algorithm)
