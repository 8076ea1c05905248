cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef tuple _RIGHT, _COLOURS

cdef class Lines:
    cdef public object _clock
    cdef public bint _colour
    cdef public object _options
    cdef public list _widths
    cdef public str _form
    cdef public Py_ssize_t _length

    @cython.locals(first=Message, cells=tuple, line=str, client_id=str, api=str)
    cpdef line(self, Exchange exchange)
    @cython.locals(notes=list, topics=list, faults=list, message=Message, whole=cython.bint)
    cdef list _notes(self, Exchange exchange)
