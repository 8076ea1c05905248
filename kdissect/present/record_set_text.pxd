cimport cython
from kdissect.present.plain_records cimport are_plain, plain_columns
from kdissect.present.record_text cimport write_nested, write_value
from kdissect.protocol.json_text cimport JsonText
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns
from kdissect.record.sets cimport BatchReader, RecordSet, read_record_set
from kdissect.record.sound cimport is_sound

cdef int _MOST_KEPT

@cython.final
cdef class Traits:
    cdef bytes at_codec
    cdef bytes at_flags
    cdef bytes at_magic

@cython.final
cdef class ControlTexts:
    cdef object _options
    cdef dict _texts

    @cython.locals(text=bytes)
    cpdef bytes text(self, Batch batch, record)

@cython.final
cdef class RecordSets:
    cdef object _options
    cdef public bint may_end_early
    cdef bint _with_records
    cdef bint _shows_secrets
    cdef str _form
    cdef ControlTexts _controls
    cdef dict _traits
    cdef BatchReader _reader
    cdef Batch _batch
    cdef Columns _columns

    @cython.locals(reader=BatchReader, batch=Batch, before=bytes)
    cpdef write(self, JsonText out, bytes data, Py_ssize_t start, Py_ssize_t size, bytes name, bint is_metadata)
    @cython.locals(found=RecordSet, batch=Batch)
    cdef _check(self, bytes data, Py_ssize_t start, Py_ssize_t size)
    cdef _see(self, list faults)
    @cython.locals(columns=Columns, controls=list)
    cdef _write_batch(self, JsonText out, Batch batch, bint is_metadata)
    @cython.locals(found=list, index=Py_ssize_t)
    cdef list _others(self, Batch batch, Columns columns, bint is_metadata)
    @cython.locals(key=cython.int, traits=Traits)
    cdef Traits _traits_of(self, Batch batch)
    @cython.locals(traits=Traits, is_wrapper=cython.bint)
    cdef _header(self, JsonText out, Batch batch)
    cdef int _producer(self, JsonText out, Batch batch) except -1
