cimport cython
from kdissect.protocol.cursor cimport Cursor

@cython.final
cdef class Messages:
    cdef public object _data
    cdef public bint _is_lost

    @cython.locals(length=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t, raw="const unsigned char*", out=list)
    cpdef list feed(self, bytes fragment)
    cpdef lose(self)

@cython.locals(at=Py_ssize_t)
cdef bint _is_whole(bytes fragment) except -1
cdef int _KEY_SHARE
cdef Py_ssize_t _LONGEST_SHAPE, _RANDOM_AT, _SESSION_AT

@cython.locals(shape=bytes)
cpdef read_client_hello(bytes message)
@cython.locals(shape=bytes)
cpdef read_server_hello(bytes message)
@cython.locals(
    raw="const unsigned char*", size=Py_ssize_t, suites=Py_ssize_t, at=Py_ssize_t, begin=Py_ssize_t, end=Py_ssize_t,
    stop=Py_ssize_t,
)
cdef bytes _shape(bytes message, int width)
@cython.locals(raw="const unsigned char*", start=Py_ssize_t)
cdef _again(tuple known, bytes message)
cdef _keep(bytes shape, tuple known)
@cython.locals(cursor=Cursor, session_id=bytes, suites=bytes, count=Py_ssize_t)
cdef _read_client_hello(bytes message, bytes shape)
@cython.locals(cursor=Cursor)
cdef _read_server_hello(bytes message, bytes shape)
@cython.locals(found=dict)
cdef dict _hello_extensions(Cursor cursor)
cpdef read_encrypted_extensions(bytes message)
@cython.locals(cursor=Cursor, chain=Cursor, found=list)
cpdef list read_certificates(bytes message, int version)
@cython.locals(cursor=Cursor)
cpdef bytes read_ticket(bytes message)
@cython.locals(names=Cursor, found=list)
cpdef list protocols(bytes extension)
cdef _text(bytes data)
@cython.locals(length=Py_ssize_t, at=cython.int, prefix=bytes, raw="const unsigned char*")
cdef bytes _vector(Cursor cursor, int width)
@cython.locals(found=dict, data=bytes, at=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t, raw="const unsigned char*", block=Cursor)
cdef dict _extensions(Cursor cursor)
