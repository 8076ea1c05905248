cimport cython
from kdissect.protocol.cursor cimport Cursor

@cython.locals(start=Py_ssize_t)
cpdef read_body(Cursor cursor, candidates, version, packet, is_cut)
@cython.locals(start=Py_ssize_t, values=dict, faults=list)
cdef _try(Cursor cursor, struct, packet, is_cut)
