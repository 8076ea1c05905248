cimport cython
from libc.stdint cimport int64_t
from kdissect.tcp.packed cimport number, put

cdef int _EXACT_BITS
cdef object _SHORT
cdef object _SHORT_BELOW
cdef int64_t _SHORT_C
cdef Py_ssize_t _MOST_FRESH, _BYTES

@cython.final
cdef class _Bucket:
    cdef public int64_t count

@cython.final
cdef class Histogram:
    cdef dict _buckets
    cdef int64_t[8] _fresh
    cdef Py_ssize_t _fresh_count
    cdef object _least
    cdef object _most
    cdef object _total
    cdef public int64_t count

    @cython.locals(
        known=dict, bucket=_Bucket, packed=bytearray, raw="unsigned char*", at=Py_ssize_t, fresh=Py_ssize_t, size=Py_ssize_t,
    )
    cdef bytes _packed(self)
    @cython.locals(raw="const unsigned char*", at=Py_ssize_t, end=Py_ssize_t, fresh=Py_ssize_t, pairs=Py_ssize_t)
    cdef _unpack(self, bytes packed)
    cpdef add(self, value, int64_t times=*)
    cpdef add_one(self, int64_t value)
    cpdef add_each(self, list values)
    @cython.locals(pair=tuple)
    cpdef add_pairs(self, list pairs)
    @cython.locals(
        at=Py_ssize_t, short=int64_t, least=int64_t, most=int64_t, total=int64_t, of=int64_t, magnitude=int64_t,
        bucket=_Bucket,
    )
    cdef _flush(self)
    @cython.locals(values=list, at=Py_ssize_t)
    cdef list _fresh_values(self)
    @cython.locals(found=_Bucket)
    cdef _Bucket _bucket_of(self, magnitude)
    @cython.locals(bucket=_Bucket)
    cdef _add_buckets(self, dict counts)
    @cython.locals(bucket=_Bucket)
    cdef _count(self, value, int64_t times)
    @cython.locals(bucket=_Bucket, known=_Bucket)
    cpdef merge(self, Histogram other)
    @cython.locals(counts=dict)
    cpdef list in_order(self)
    @cython.locals(found=list, wanted=list, below=int64_t, following=Py_ssize_t, count=int64_t)
    cpdef list at_ranks(self, ranks, list ordered=*)
    @cython.locals(known=_Bucket, below=int64_t, end=int64_t, at=Py_ssize_t, short=int64_t)
    cpdef list up_to(self, values)
    cdef bint _is_long(self) except -1
    cdef list _long_up_to(self, values)
    @cython.locals(percent=int64_t)
    cdef list _ranks(self, tuple percents)
    @cython.locals(counts=dict, found=list, ranks=list)
    cdef list _buckets_of(self, tuple percents)

cdef object _bucket(value)
@cython.locals(magnitude=int64_t, shift=cython.int)
cdef int64_t _short_bucket(int64_t value) noexcept
@cython.locals(left=int64_t, shift=cython.int)
cdef int _short_shift(int64_t magnitude) noexcept
@cython.locals(made=Histogram)
cpdef Histogram of_parts(int64_t count, total, least, most, counts)
@cython.locals(at=Py_ssize_t, histogram=Histogram)
cpdef add_known(list histograms, tuple values)
