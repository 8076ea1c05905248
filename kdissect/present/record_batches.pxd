cimport cython
from kdissect.protocol.json_text cimport JsonText
from kdissect.record.records cimport Columns

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class PlainBatch:
    cdef public Columns columns
    cdef public dict common
    cdef public object assigned

cdef class LinesWriter:
    cdef object _table
    cdef object _file
    cdef object _options
    cdef JsonText _text
    cdef tuple _groups
