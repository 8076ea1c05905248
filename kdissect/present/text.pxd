cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message

cdef tuple _RIGHT, _COLOURS

cdef class Lines:
    cdef public object _clock
    cdef public bint _colour
    cdef public object _options
    cdef public list widths

    @cython.locals(cells=tuple, out=list, widths=list, text=str, columns=Py_ssize_t, at=Py_ssize_t, most=Py_ssize_t)
    cpdef line(self, Exchange exchange)
    @cython.locals(notes=list, topics=list, message=Message, whole=cython.bint)
    cdef list _notes(self, Exchange exchange)
