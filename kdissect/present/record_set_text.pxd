cimport cython
from kdissect.present.record_text cimport write_nested, write_value
from kdissect.protocol.json_text cimport JsonText
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns
from kdissect.record.sets cimport RecordSet, read_record_set
from kdissect.record.sound cimport is_sound

cdef int POSITION, BATCH_SIZE, MAGIC, LAST_OFFSET, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH
cdef int BASE_SEQUENCE, LEADER_EPOCH, CRC, BASE_TIMESTAMP, CRC_VALID, PARTIAL, TRAIT, VALUE

@cython.final
cdef class BatchStep:
    cdef str name
    cdef bytes before
    cdef dict traits
    cdef int way

    @cython.locals(text=bytes)
    cdef bytes trait(self, Batch batch)

@cython.final
cdef class RecordSets:
    cdef object _options
    cdef public bint may_end_early
    cdef list _steps
    cdef dict _told_controls

    @cython.locals(found=RecordSet, batch=Batch, at=Py_ssize_t)
    cpdef write(self, JsonText out, bytes data, Py_ssize_t start, Py_ssize_t size, bytes name, bint is_metadata)
    @cython.locals(way=cython.int)
    cdef _value(self, JsonText out, Batch batch, BatchStep step)
    @cython.locals(text=bytes, out=list)
    cdef list _controls(self, Batch batch, Columns columns)
    @cython.locals(columns=Columns, step=BatchStep)
    cpdef _batch(self, JsonText out, Batch batch, bint is_metadata)
