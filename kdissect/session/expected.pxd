cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Request, Response
from kdissect.protocol.survey cimport Survey

cdef tuple _NONE

cdef class Expected:
    cdef public object _from_start
    cdef public set _served
    cdef public set _refused
    cdef public dict _runs

    cpdef lose(self)
    cpdef bint serves(self, int api_key) except -1
    @cython.locals(seen=Survey)
    cpdef tuple judge(self, Exchange exchange, Request asked, Response response)
