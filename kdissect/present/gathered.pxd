cimport cython
from libc.stdint cimport int64_t
from kdissect.names cimport is_metadata_topic
from kdissect.present.gathered_records cimport GatheredRecords
from kdissect.present.plain_records cimport plain_columns
from kdissect.present.record_set_text cimport ControlTexts
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns, sum64
from kdissect.record.rows cimport Int64Rows
from kdissect.record.sets cimport BatchReader

cdef int SET, COUNT, MAGIC, CODEC, TIMESTAMP_TYPE, PRODUCER_ID, PRODUCER_EPOCH, LEADER_EPOCH, BATCH_OFFSET, HAS_OFFSET
cdef int CRC_VALID, IS_TRANSACTIONAL, CONTROL_TEXT, SHIFT, IS_ASSIGNED, SEQUENCE_SHIFT, HAS_SEQUENCE
cdef Py_ssize_t _ROW, _MOST_KEPT
cdef int _CODEC_BITS, _LOG_APPEND_TIME

@cython.final
cdef class Gathered:
    cdef public GatheredRecords records
    cdef public Py_ssize_t batches
    cdef public list sets
    cdef public list controls
    cdef public dict value_sizes
    cdef public object held
    cdef object _options
    cdef bint _shows_secrets
    cdef object _full
    cdef Py_ssize_t _most_rows
    cdef Py_ssize_t _most_bytes
    cdef ControlTexts _controls
    cdef BatchReader _reader
    cdef Batch _batch
    cdef Columns _columns
    cdef Int64Rows _numbers
    cdef dict _set

    cpdef clear(self)
    cpdef numbers(self)
    @cython.locals(count=Py_ssize_t)
    cpdef add(self, source, dict more=*)
    @cython.locals(data=bytes, context=dict, reader=BatchReader, batch=Batch, count=Py_ssize_t, columns=Columns)
    cdef Py_ssize_t _add_set(self, tuple told, dict more) except -1
    @cython.locals(control=Py_ssize_t)
    cdef _add_plain(self, dict context, Batch batch, Columns columns, assigned)
    @cython.locals(
        at=Py_ssize_t, numbers="long long*", base=int64_t, sequence=int64_t, start=Py_ssize_t, end=Py_ssize_t
    )
    cdef int _add_columns(self, dict context, Batch batch, Columns columns, assigned, Py_ssize_t control) except -1
    @cython.locals(at=Py_ssize_t, numbers="long long*", control=Py_ssize_t)
    cdef int _add_row(self, dict context, Batch batch, dict row) except -1
    @cython.locals(at=Py_ssize_t, numbers="long long*", is_appended=cython.bint)
    cdef Py_ssize_t _begin_batch(self, dict context, Batch batch, Py_ssize_t count, Py_ssize_t control) except -1
    @cython.locals(held=Py_ssize_t)
    cdef int _end_batch(self) except -1
