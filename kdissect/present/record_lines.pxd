cimport cython
from libc.stdint cimport int64_t
from kdissect.names cimport is_metadata_topic
from kdissect.present.plain_records cimport are_plain, plain_columns
from kdissect.present.record_set_text cimport ControlTexts
from kdissect.present.record_text cimport text_between, write_lines, write_value
from kdissect.protocol.json_text cimport JsonText
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns
from kdissect.present.records cimport brief_context, may_have_records
from kdissect.record.sets cimport BatchReader
from kdissect.session.briefs cimport Brief, PairLayout

cdef Py_ssize_t _ROWS_A_PIECE, _BYTES_A_PIECE, _MOST_KEPT

@cython.final
cdef class BatchTraits:
    cdef bytes codec
    cdef bytes flags
    cdef bytes no_producer
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
    cdef int _latest_key
    cdef BatchTraits _latest
    cdef dict _heads
    cdef tuple _before
    cdef tuple _behind
    cdef tuple _last

    @cython.locals(count=Py_ssize_t)
    cpdef add_all(self, events)
    @cython.locals(count=Py_ssize_t, brief=Brief, data=bytes, context=dict, head=bytes)
    cpdef add(self, source)
    cpdef flush(self)
    @cython.locals(
        sets=list, form=PairLayout, offsets=dict, count=Py_ssize_t, told=tuple, is_request=cython.bint, start=Py_ssize_t,
        size=Py_ssize_t, whole=bytes, data=bytes, head=bytes,
    )
    cdef Py_ssize_t _add_brief(self, Brief brief) except -1
    @cython.locals(more=JsonText, key=tuple, rest=bytes)
    cdef bytes _head_of(self, Brief brief, tuple told)
    @cython.locals(batch=Batch, count=Py_ssize_t, reader=BatchReader, columns=Columns, others=list)
    cdef Py_ssize_t _write_set(
        self, bytes data, topic, topic_id, assigned, bytes head, dict context, tuple told
    ) except -1
    @cython.locals(
        text=JsonText, more=JsonText, last=tuple, traits=BatchTraits, producer=bytes, by_place=cython.bint,
        between=tuple, first=Py_ssize_t, index=Py_ssize_t, line=bytes, flags=bytes, end=bytes, before=tuple, said=bytes,
    )
    cdef _write_batch(self, Batch batch, Columns columns, bytes head, assigned, list others)
    @cython.locals(text=JsonText, end=Py_ssize_t)
    cdef _write_lines(
        self, Columns columns, Py_ssize_t first, Py_ssize_t last, tuple between, assigned, bint by_place
    )
    @cython.locals(index=Py_ssize_t, records=list, found=list)
    cdef list _others(self, Batch batch, Columns columns, tuple about, dict context, assigned, is_metadata)
    @cython.locals(key=cython.int, latest=BatchTraits, traits=BatchTraits)
    cdef BatchTraits _traits_of(self, Batch batch)

cdef _write_known(JsonText out, int64_t number)
