cimport cython
from kdissect.exchange cimport Exchange
from kdissect.record.batch cimport Batch

cpdef dict place_context(Exchange exchange, place)
cpdef add_batch(dict row, Batch batch)
