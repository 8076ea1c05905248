cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor, cursor_between
from kdissect.record.batch cimport Batch, Budget
from kdissect.record.messages cimport message_crc

cdef int64_t _LEAST_0, _LEAST_1, _LEAST_2, _OVERHEAD
cdef int _CODEC_BITS

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class RecordSet:
    cdef public list batches
    cdef public Py_ssize_t remainder
    cdef public list own_faults

@cython.locals(
    found=RecordSet, budget=Budget, position=Py_ssize_t, end=Py_ssize_t, partial=cython.bint, batch=Batch,
)
cpdef RecordSet read_record_set(bytes data, object limits=*)
@cython.locals(left=Py_ssize_t, size=int64_t, magic=int64_t, least=int64_t, high=int64_t, raw="const unsigned char*")
cpdef object frame_defect(bytes data, Py_ssize_t position)
@cython.locals(batch=Batch, cursor=Cursor, size=int64_t, last_delta=int64_t)
cdef Batch _batch_v2(bytes data, Py_ssize_t position, bint partial, limits, Budget budget)
@cython.locals(batch=Batch, size=int64_t, cursor=Cursor)
cdef Batch _message(bytes data, Py_ssize_t position, limits, Budget budget)
cdef _header_faults(Batch batch)
