cimport cython

@cython.locals(values=dict, key=str)
cpdef tuple partition_of(tuple ancestors)
@cython.locals(key=str)
cdef _sibling_name(dict values)
