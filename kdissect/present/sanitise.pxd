cimport cython

cdef list _SPACES

@cython.locals(cut=cython.bint)
cpdef str sanitise(str text, longest=*)
cpdef Py_ssize_t width(str text) except -1
@cython.locals(
    lines=list, parts=list, texts=list, text=str, row=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t, wanted=Py_ssize_t,
    missing=Py_ssize_t, last=Py_ssize_t, most=Py_ssize_t,
)
cpdef list aligned(list columns, list cells, Py_ssize_t count, Py_ssize_t gap)
