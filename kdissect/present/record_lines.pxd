cimport cython
from libc.stdint cimport int64_t
from kdissect.present.plain_records cimport plain_columns
from kdissect.present.record_set_text cimport ControlTexts
from kdissect.present.record_text cimport text_between, write_lines, write_value
from kdissect.protocol.json_text cimport JsonText
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns
from kdissect.record.sets cimport BatchReader

cdef Py_ssize_t _ROWS_A_PIECE, _BYTES_A_PIECE, _MOST_KEPT

@cython.final
cdef class BatchTraits:
    cdef bytes codec
    cdef bytes flags
    cdef bytes timestamp

@cython.final
cdef class LinesWriter:
    cdef object _table
    cdef object _file
    cdef object _options
    cdef str _form
    cdef bint _shows_secrets
    cdef tuple _groups
    cdef JsonText _text
    cdef JsonText _between
    cdef BatchReader _reader
    cdef Batch _batch
    cdef Columns _columns
    cdef ControlTexts _controls
    cdef dict _traits
    cdef tuple _behind
    cdef tuple _last

    @cython.locals(count=Py_ssize_t)
    cpdef add(self, source)
    cpdef flush(self)
    @cython.locals(
        data=bytes, context=dict, batch=Batch, count=Py_ssize_t, head=bytes, reader=BatchReader, columns=Columns
    )
    cdef Py_ssize_t _write_set(self, tuple told) except -1
    @cython.locals(
        text=JsonText, more=JsonText, behind=tuple, last=tuple, traits=BatchTraits, producer=bytes,
        by_place=cython.bint, between=tuple, first=Py_ssize_t, end=Py_ssize_t,
    )
    cdef _write_batch(self, Batch batch, Columns columns, bytes head, assigned)
    @cython.locals(key=cython.int, traits=BatchTraits)
    cdef BatchTraits _traits_of(self, Batch batch)

cdef _write_known(JsonText out, int64_t number)
