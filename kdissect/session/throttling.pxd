cimport cython
from libc.stdint cimport int64_t
from kdissect.message cimport Message
from kdissect.protocol.survey cimport Survey

@cython.locals(seen=Survey)
cpdef int64_t told_ms(Message response) except? -1
