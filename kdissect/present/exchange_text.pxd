cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.present.brief_text cimport BriefText
from kdissect.present.message_text cimport MessageText
from kdissect.present.record_text cimport write_texts, write_value
from kdissect.protocol.json_text cimport JsonText
from kdissect.session.briefs cimport Brief

cdef int NUMBER, CONNECTION, CLIENT, BROKER, API_KEY, API, API_VERSION, CORRELATION_ID, CLIENT_ID
cdef int PRINCIPAL, PACKET, START_NS, TIME_NS, LATENCY, BEHIND, BEHIND_ID, NETWORK, THROTTLE
cdef int SERVED, WAIT, WORK, TRANSFER, THINK, SIZE, MISSING, INFERRED, ERROR, ERROR_CLASS
cdef int TOPICS, GROUPS, TRANSACTIONAL_IDS, POINT, POINTS, BETWEEN, FAULTS, MESSAGE, OTHER
cdef Py_ssize_t _BYTES_A_PIECE

@cython.final
cdef class ColumnStep:
    cdef object column
    cdef bytes before
    cdef bint is_of_response
    cdef int way

@cython.final
cdef class ExchangeLines:
    cdef object _file
    cdef object _options
    cdef JsonText _text
    cdef MessageText _messages
    cdef BriefText _briefs
    cdef list _steps
    cdef dict _endpoints
    cdef object _known

    cpdef write(self, source)
    @cython.locals(out=JsonText, whole=Py_ssize_t)
    cpdef write_all(self, sources)
    cdef _add(self, source)
    @cython.locals(out=JsonText, step=ColumnStep, begun=Py_ssize_t)
    cpdef bint _line(self, Exchange exchange) except -1
    @cython.locals(out=JsonText, way=cython.int, message=Message)
    cdef _value(self, Exchange exchange, ColumnStep step)
    @cython.locals(text=bytes)
    cdef bytes _endpoint(self, endpoint)

