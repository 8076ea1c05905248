cimport cython
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message, Request, Response, Token, begin
from kdissect.model cimport Frame

cdef object _FROM_BROKER, _TO_BROKER

cpdef tuple plain_exchange(Exchange exchange)
cpdef Exchange exchange_of(tuple plain, names=*, limits=*)
@cython.locals(frame=tuple, known=tuple, request=Request, token=Token)
cdef tuple _plain_message(Message message)
cdef tuple _plain_frame(Frame frame)
@cython.locals(frame=Frame)
cdef Frame _frame(tuple plain)
@cython.locals(request=Request)
cdef _request(tuple plain, limits)
@cython.locals(response=Response)
cdef _response(tuple plain, limits)
