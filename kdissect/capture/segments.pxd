cimport cython

cdef int ACK, AUTHENTICATION, ETHERNET, IPV4, IPV6, TCP

cdef class SegmentReader:
    cdef public object _layers
    cdef public object _datagrams
    cdef public dict _pairs
    cdef dict __dict__

    @cython.locals(
        link_type=cython.int, at=Py_ssize_t, data=bytes, first=cython.int, total=Py_ssize_t, fragment=cython.int,
        upper=cython.int, offset=cython.int, flags=cython.int, length=Py_ssize_t, header_bytes=Py_ssize_t,
        protocol=cython.int, identification=cython.longlong, checksum=cython.longlong, identity=cython.longlong,
        pair=tuple,
    )
    cpdef feed(self, packet)
