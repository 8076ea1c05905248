cimport cython
from libc.stdint cimport int64_t
from kdissect.record.messages cimport int32_at, int64_at
from kdissect.record.records cimport sum64

cdef int _HEADER_BYTES, _LOG_OVERHEAD, _MAGIC_AT, _SMALLEST_BATCH
cdef int64_t _LOW

@cython.final
cdef class Header:
    cdef public int64_t attributes
    cdef public int64_t base_offset
    cdef public int64_t base_sequence
    cdef public int64_t base_timestamp
    cdef public int64_t crc
    cdef public bint is_whole
    cdef public int64_t last_offset
    cdef public int magic
    cdef public int64_t max_timestamp
    cdef public int64_t position
    cdef public int64_t producer_epoch
    cdef public int64_t producer_id
    cdef public object records
    cdef public int64_t size

@cython.locals(each=Header)
cpdef list headers(bytes data, limits=*)
@cython.locals(each=Header)
cpdef list sets_of(bytes data, limits=*)
cdef Header _joined(list run)
cpdef list stamps_of(Header batch, bytes data)
@cython.locals(
    end=Py_ssize_t, most=int64_t, size=int64_t, length=int64_t, count=int64_t, each=Header, raw="const unsigned char*"
)
cdef _read_headers(bytes data, int64_t position, limits, bint unpacks, list found)
cdef _read_messages(bytes data, int64_t start, limits, bint unpacks, list found)
