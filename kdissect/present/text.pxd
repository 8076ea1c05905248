cimport cython
from kdissect.exchange cimport Exchange
from kdissect.model cimport Frame
from kdissect.message cimport Message, Request, Response
from kdissect.present.form cimport Clock, duration, size
from kdissect.present.sanitise cimport sanitise, width

cdef int NUMBER, TIME, CONNECTION, ENDS, CLIENT, API, CORRELATION, LATENCY, SIZES
cdef tuple _RIGHT, _COLOURS

cdef class Lines:
    cdef public Clock _clock
    cdef public bint _colour
    cdef public object _options
    cdef public list widths
    cdef public dict _ends

    @cython.locals(
        first=Message, out=list, ends=str, client=str, api=str, took=str, both=str, notes=list,
    )
    cpdef line(self, Exchange exchange)
    @cython.locals(most=Py_ssize_t, fill=str)
    cdef str _cell(self, int at, str text, Py_ssize_t columns)
    @cython.locals(text=str)
    cdef str _ends_of(self, Exchange exchange)
    @cython.locals(notes=list, topics=list, message=Message, whole=cython.bint, faults=list, frame=Frame)
    cdef list _notes(self, Exchange exchange)

cpdef str api_text(Exchange exchange)
@cython.locals(request=Message, response=Message, asked=str, answered=str)
cpdef str sizes(Exchange exchange)
