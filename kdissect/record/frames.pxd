cimport cython
from libc.stdint cimport int64_t

cdef int64_t _AT_ONCE, _USUAL_RATIO, _EXPANSION, _SLICE, _WINDOW, _LEAST_FRAME, _MOST_EXPONENT
cdef bytes _ZSTD_MAGIC
cdef list _lz4_kept, _zstd_kept

@cython.locals(room=int64_t)
cpdef bytes unpack_frame(int codec, bytes data, int magic, int64_t bound)
cdef bytes _gzip(bytes data, int64_t room)
@cython.locals(start=Py_ssize_t, raw="const unsigned char*", size=int64_t)
cdef bytes _snappy(bytes data, int64_t room)
cdef bytes _lz4(bytes data, int64_t room)
@cython.locals(content=int64_t)
cdef bytes _zstd(bytes data, int64_t room)
@cython.locals(
    raw="const unsigned char*", size=Py_ssize_t, flags=int64_t, at=Py_ssize_t, window=int64_t, content=int64_t,
    is_single=cython.bint, exponent=int64_t, width=int64_t, place=int64_t, byte=int64_t,
)
cdef int64_t _zstd_content(bytes data, int64_t room) noexcept
@cython.locals(raw="const unsigned char*", size=Py_ssize_t, last=cython.bint, header=int64_t)
cdef int64_t _zstd_end(bytes data, int64_t position) noexcept
