cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.present.record_text cimport write_nested, write_texts, write_value
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.json_text cimport JsonText
from kdissect.protocol.json_walk cimport Walk, Way
from kdissect.protocol.layout cimport Layout
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns
from kdissect.record.sets cimport RecordSet, read_record_set

cdef int NUMBER, CONNECTION, CLIENT, BROKER, API_KEY, API_VERSION, CORRELATION_ID
cdef int PACKET, SIZE, START_NS, TIME_NS, TOPICS, FAULTS, MESSAGE, ATTRIBUTE, OTHER
cdef int GROUPS, TRANSACTIONAL_IDS, COMPUTED

cdef int POSITION, BATCH_SIZE, MAGIC, LAST_OFFSET, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH
cdef int BASE_SEQUENCE, LEADER_EPOCH, CRC, VALUE

cdef class RecordSets

@cython.final
cdef class BatchStep:
    cdef str name
    cdef bytes before
    cdef int way

@cython.final
cdef class Step:
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
    cdef RecordSets _records
    cdef Walk _walk
    cdef list _steps
    cdef dict _ways

    cpdef write(self, Exchange exchange)
    @cython.locals(out=JsonText, step=Step)
    cpdef bytes _line(self, Exchange exchange)
    @cython.locals(out=JsonText, way=cython.int, message=Message, first=Message)
    cpdef _value(self, Exchange exchange, Step step)
    @cython.locals(out=JsonText, walk=Walk, header=Way, body=Way, known=Layout)
    cpdef _message(self, Message message, bint is_response)

@cython.final
cdef class RecordSets:
    cdef object _options
    cdef public bint may_end_early
    cdef list _steps

    @cython.locals(found=RecordSet, batch=Batch, at=Py_ssize_t)
    cpdef write(self, JsonText out, bytes data, bytes name)
    @cython.locals(way=cython.int)
    cdef _value(self, JsonText out, Batch batch, BatchStep step)
    @cython.locals(columns=Columns, step=BatchStep)
    cpdef _batch(self, JsonText out, Batch batch)
