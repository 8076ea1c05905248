cimport cython
from libc.stdint cimport int64_t
from kdissect.record.records cimport Columns, sum64

cdef int64_t _OVERHEAD, _LEAST_SIZE_0, _LEAST_SIZE_1, _SHORT, _FEW, _LOW, _REVERSED
cdef int64_t[1024] _TABLES
cdef bint _IS_COMPILED

@cython.locals(raw="const unsigned char*", start=int64_t)
cpdef int64_t message_crc(bytes data, int64_t position, int64_t end) except -1
@cython.locals(crc=int64_t, at=int64_t)
cpdef int64_t short_crc(const unsigned char* raw, int64_t start, int64_t end) except -1
@cython.locals(value=int64_t, crc=int64_t, at=int64_t, _=int64_t)
cdef _fill_tables()

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Contents:
    cdef public int64_t key_at, key_size, value_at, value_size, end

    @cython.locals(at=int64_t, size=int64_t, start=int64_t)
    cpdef find(self, bytes data, int64_t position, int64_t end, int64_t magic)
    cpdef add_to(self, Columns columns, int64_t offset, int64_t timestamp)

cpdef Contents contents_of(bytes data, int64_t position, int64_t end, int64_t magic)
@cython.locals(high=int64_t)
cpdef int64_t int32_at(const unsigned char* raw, int64_t at) noexcept
@cython.locals(high=int64_t, low=int64_t)
cpdef int64_t int64_at(const unsigned char* raw, int64_t at) noexcept

@cython.final
@cython.no_gc
cdef class _Inside:
    cdef Columns columns
    cdef int64_t found, first_offset, last_offset, bad_crc, nested, broken, excess
    cdef object stop
    cdef str first_broken

@cython.locals(
    columns=Columns, data=bytes, raw="const unsigned char*", contents=Contents, is_appended=cython.bint, appended=int64_t,
    position=int64_t, end=int64_t, message_end=int64_t, offset=int64_t, magic=int64_t,
    attributes=int64_t, timestamp=int64_t,
)
cdef _read_inside(_Inside inside, append_timestamp, int64_t limit)
@cython.locals(raw="const unsigned char*", left=int64_t, size=int64_t, magic=int64_t, least=int64_t)
cdef int64_t _frame_inside(bytes data, int64_t position, int64_t end, int64_t found, int64_t limit) except -1
cdef list _faults_inside(_Inside inside, bint complete)
cdef object _what_to_add(_Inside inside, bint complete, int64_t wrapper_offset)
@cython.locals(inside=_Inside, columns=Columns)
cpdef object unwrap(
    bytes data, bint complete, int64_t wrapper_magic, int64_t wrapper_offset, object append_timestamp, int64_t limit,
    Columns into
)
