cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.present.record_text cimport write_nested, write_texts, write_value
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.json_text cimport JsonText
from kdissect.protocol.json_walk cimport Walk
from kdissect.protocol.json_way cimport Way
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns
from kdissect.record.sets cimport RecordSet, read_record_set
from kdissect.record.sound cimport is_sound

cdef int NUMBER, CONNECTION, CLIENT, BROKER, API_KEY, API_VERSION, CORRELATION_ID
cdef int PACKET, SIZE, START_NS, TIME_NS, TOPICS, FAULTS, MESSAGE, ATTRIBUTE, OTHER
cdef int GROUPS, TRANSACTIONAL_IDS, WAIT, WORK, POINTS

cdef int POSITION, BATCH_SIZE, MAGIC, LAST_OFFSET, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH
cdef int BASE_SEQUENCE, LEADER_EPOCH, CRC, VALUE

cdef class SecretJudge
cdef class RecordSets
cdef class Ways

@cython.final
cdef class BatchStep:
    cdef str name
    cdef bytes before
    cdef int way

@cython.final
cdef class ColumnStep:
    cdef object column
    cdef str name
    cdef bytes before
    cdef bint is_of_response
    cdef int way

@cython.final
cdef class ExchangeLines:
    cdef object _file
    cdef object _options
    cdef JsonText _text
    cdef SecretJudge _judge
    cdef RecordSets _records
    cdef Walk _walk
    cdef list _steps
    cdef dict _ways
    cdef dict _endpoints
    cdef object _known

    cpdef write(self, Exchange exchange)
    @cython.locals(out=JsonText, step=ColumnStep)
    cpdef bytes _line(self, Exchange exchange)
    @cython.locals(out=JsonText, way=cython.int, message=Message, first=Message)
    cpdef _value(self, Exchange exchange, ColumnStep step)
    @cython.locals(text=bytes)
    cpdef _endpoint(self, endpoint)
    @cython.locals(out=JsonText, walk=Walk, ways=Ways)
    cpdef _message(self, Exchange exchange, Message message, bint is_response)

@cython.final
cdef class Ways:
    cdef Way header
    cdef Way body
    cdef object hidden

@cython.final
cdef class SecretJudge:
    cdef object _options
    cdef object _about
    cdef object _verdicts

    cpdef begin(self, Exchange exchange, Message message, struct, maybe)
    cpdef hides(self)

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
