cimport cython

@cython.locals(cut=cython.bint)
cpdef str sanitise(str text, longest=*)
cpdef Py_ssize_t width(str text) except -1
