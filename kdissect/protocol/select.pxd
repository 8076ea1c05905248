cimport cython

@cython.locals(name=str, wanted=cython.bint)
cpdef first_true(tuple plan, dict values)
cpdef list pick(tuple plan, dict values)
@cython.locals(element=object, name=str, wanted=cython.bint)
cdef _pick(tuple plan, dict values, tuple ancestors, list out)
