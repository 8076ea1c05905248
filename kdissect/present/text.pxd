cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.model cimport Frame
from kdissect.message cimport Message, Request, Response
from kdissect.present.form cimport Clock, write_duration, write_size
from kdissect.present.sanitise cimport sanitise, width
from kdissect.protocol.json_text cimport JsonText
from kdissect.protocol.survey cimport Survey
from kdissect.session.briefs cimport Brief, PairLayout

cdef int NUMBER, TIME, CONNECTION, ENDS, CLIENT, API, CORRELATION, LATENCY, SIZES
cdef tuple _RIGHT, _COLOURS
cdef bytes _RESET, _ARROW
cdef Py_ssize_t _RECENT

@cython.final
cdef class _SharedText:
    cdef bytes text
    cdef Py_ssize_t columns
    cdef tuple ends

@cython.final
cdef class _SharedColumns:
    cdef bytes text
    cdef int64_t number
    cdef int64_t widening
    cdef tuple ends
    cdef str client

@cython.locals(made=_SharedText)
cdef _SharedText _shared(bytes text, Py_ssize_t columns, tuple ends)
cdef _SharedText _shared_text(str text)
@cython.locals(out=JsonText, end=bytes, raw="const unsigned char*", at=cython.int, part=cython.int, text=bytes)
cdef _SharedText _ends_text(tuple ends)

@cython.final
cdef class Lines:
    cdef public Clock _clock
    cdef public bint _colour
    cdef public object _options
    cdef int64_t[9] _widest
    cdef int64_t _widening
    cdef list _of_connections
    cdef list _of_apis
    cdef public dict _ends
    cdef public dict _clients
    cdef public dict _apis
    cdef public dict _errors
    cdef public dict _topics

    @cython.locals(first=Message, start=Py_ssize_t, took=Py_ssize_t)
    cpdef write(self, JsonText out, Exchange exchange)
    @cython.locals(start=Py_ssize_t, took=Py_ssize_t, answered=Survey, error=str)
    cpdef write_brief(self, JsonText out, Brief brief)
    @cython.locals(
        number=int64_t, ends=tuple, client=str, place=Py_ssize_t, told=_SharedColumns, out=JsonText,
        start=Py_ssize_t, is_same=bint,
    )
    cdef bytes _connection_in(self, Brief brief)
    @cython.locals(place=Py_ssize_t, told=_SharedColumns, out=JsonText)
    cdef bytes _api_column(self, PairLayout form)
    @cython.locals(rows=Py_ssize_t, size=Py_ssize_t)
    cpdef Py_ssize_t write_all(self, JsonText out, events) except -1
    cdef Py_ssize_t _begin(self, JsonText out, int at) except -1
    @cython.locals(most=Py_ssize_t)
    cdef int _end(self, JsonText out, int at, Py_ssize_t start, Py_ssize_t columns) except -1
    @cython.locals(start=Py_ssize_t)
    cdef int _put(self, JsonText out, int at, _SharedText told) except -1
    cdef _SharedText _ends_of(self, Exchange exchange)
    @cython.locals(told=_SharedText)
    cdef _SharedText _ends_between(self, int64_t connection, tuple ends)
    cdef _SharedText _client_of(self, Exchange exchange)
    @cython.locals(told=_SharedText)
    cdef _SharedText _client_named(self, str client)
    @cython.locals(first=Message)
    cdef _SharedText _api_of(self, Exchange exchange)
    @cython.locals(told=_SharedText)
    cdef _SharedText _api_in(self, tuple key, str name)
    cdef str _error_in(self, list codes, tuple routine)
    cdef int _write_sizes(self, JsonText out, Exchange exchange) except -1
    @cython.locals(told=bytes)
    cdef _note_topics(self, JsonText out, list topics)
    @cython.locals(faults=list)
    cdef int _write_notes(self, JsonText out, Exchange exchange) except -1
    cdef int _note_missing(self, JsonText out, str side, str why) except -1
    @cython.locals(frame=Frame)
    cdef int _note_cut(self, JsonText out, Exchange exchange, Message message) except -1
    cdef int _note(self, JsonText out, str text, str colour) except -1

cpdef str error_text(Exchange exchange)
cpdef str api_text(Exchange exchange)
