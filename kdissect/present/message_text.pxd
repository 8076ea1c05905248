cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.present.record_set_text cimport RecordSets
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.json_text cimport JsonText
from kdissect.protocol.json_walk cimport Walk
from kdissect.protocol.json_plan cimport Way
from kdissect.protocol.layout cimport Layout
from kdissect.session.briefs cimport Brief

cdef class SecretJudge
cdef class Ways

@cython.final
cdef class MessageText:
    cdef JsonText _out
    cdef object _options
    cdef RecordSets _records
    cdef SecretJudge _judge
    cdef Walk _walk
    cdef dict _ways

    @cython.locals(payload=bytes, ways=Ways, judge=SecretJudge)
    cpdef write(self, Exchange exchange, Message message, bint is_response)
    @cython.locals(ways=Ways, data=bytes, start=Py_ssize_t, body=Py_ssize_t, end=Py_ssize_t)
    cpdef write_in_brief(self, Brief brief, Layout known, bint is_response)
    @cython.locals(out=JsonText, walk=Walk, begun=Py_ssize_t)
    cdef _write(
        self, bytes data, Py_ssize_t start, Py_ssize_t body, Py_ssize_t end, Ways ways, bint is_response,
        SecretJudge judge
    )
    @cython.locals(out=JsonText)
    cdef _write_tail(self, bytes data, Py_ssize_t start, Py_ssize_t end, Ways ways, Py_ssize_t begun)

@cython.final
cdef class Ways:
    cdef Way header
    cdef Way body
    cdef object hidden
    cdef bytes after_tail
    cdef bytes tail

@cython.final
cdef class SecretJudge:
    cdef object _options
    cdef object _about
    cdef object _verdicts

    cpdef begin(self, Exchange exchange, Message message, struct, maybe)
    cpdef hides(self)
