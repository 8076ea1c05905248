cimport cython

cpdef list pick(tuple plan, dict values)
@cython.locals(element=object, name=str, wanted=cython.bint, step=tuple)
cdef _pick(tuple plan, dict values, tuple ancestors, list out)
