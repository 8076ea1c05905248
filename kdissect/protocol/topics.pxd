cimport cython

cdef dict _ROLES

@cython.locals(ancestors=tuple, name=str, out=list)
cpdef list mentioned_topics(struct, dict values)

@cython.locals(values=dict, key=str)
cpdef tuple partition_of(tuple ancestors)
@cython.locals(key=str)
cdef _sibling_name(dict values)
