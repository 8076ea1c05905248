from kdissect.protocol.survey cimport Route

cdef class Layout:
    cdef public tuple _asked
    cdef public tuple candidates
    cdef public bint has_records
    cdef public int header_version
    cdef public str name
    cdef public object struct
    cdef public bint teaches
    cdef public Route way
