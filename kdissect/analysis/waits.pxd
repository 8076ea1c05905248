cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.protocol.survey cimport Survey

cdef tuple _known
cpdef split(Exchange exchange)
@cython.locals(request=Message, response=Message)
cdef _split(Exchange exchange, served)
@cython.locals(data=bytes)
cpdef tuple asked_wait(Message request)
@cython.locals(seen=Survey)
cdef bint _has_reason(Exchange exchange, Message response, least) except -1
