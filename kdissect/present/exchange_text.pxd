cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.model cimport Frame
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.json_text cimport JsonText
from kdissect.protocol.json_walk cimport Walk, Way
from kdissect.record.batch cimport Batch
from kdissect.record.records cimport Columns
from kdissect.record.sets cimport RecordSet

cdef class RecordSets

@cython.final
cdef class ExchangeLines:
    cdef object _file
    cdef object _options
    cdef JsonText _text
    cdef RecordSets _records
    cdef list _steps

    cpdef write(self, Exchange exchange)
    @cython.locals(out=JsonText, before=bytes, name=str, kind=str, message=Message, facts=dict)
    cpdef bytes _line(self, Exchange exchange)
    @cython.locals(out=JsonText, cursor=Cursor)
    cpdef _message(self, Message message, Exchange exchange)

@cython.final
cdef class RecordSets:
    cdef object _options
    cdef public bint may_end_early
    cdef list _steps

    @cython.locals(found=RecordSet, batch=Batch, at=Py_ssize_t)
    cpdef write(self, JsonText out, bytes data, bytes name)
    @cython.locals(columns=Columns, before=bytes, name=str)
    cpdef _batch(self, JsonText out, Batch batch)

@cython.locals(facts=dict, request=Message, response=Message, first=Message, frame=Frame)
cdef dict _facts(Exchange exchange)
