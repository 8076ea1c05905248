cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Chunk
from kdissect.tls.flow cimport Flow
from kdissect.tls.keying cimport Keying
from kdissect.tls.records cimport length_at

cdef int _APPLICATION_DATA, _HEADER_BYTES

@cython.final
cdef class Tls:
    cdef public tuple _flows
    cdef public bint _gave_up
    cdef public Keying _keying
    cdef public int _least_skipped
    cdef public object _limits
    cdef public int64_t _retries
    cdef public object _secrets
    cdef public object _waiting
    cdef public int64_t read_bytes

    @cython.locals(out=list, flow=Flow, chunk=Chunk, size=Py_ssize_t, at=Py_ssize_t)
    cpdef list feed(self, int side, piece)
    cpdef Py_ssize_t skip(self, int side, bytes data, Py_ssize_t start, Py_ssize_t length) except -1
    @cython.locals(flow=Flow)
    cdef _note_dark(self)
    @cython.locals(
        data=bytes, at=Py_ssize_t, size=Py_ssize_t, length=Py_ssize_t, body=Py_ssize_t, end=Py_ssize_t, header=bytes,
        fragment=bytes, kind=cython.int, content=bytes, made=Chunk,
    )
    cdef Py_ssize_t _feed_ready(self, int side, Flow flow, Chunk chunk, list out) except -1
    cdef Flow _flow(self, int side)
    @cython.locals(one=Flow, other=Flow)
    cdef int64_t _kept(self) except -1
    @cython.locals(flow=Flow, must_wait=cython.bint)
    cdef _take(self, int side, item, list out)
    cdef bint _is_in_turn(self, Flow flow) except -1
    cdef bint _is_clear(self, Flow flow, int kind) except -1
    cdef _drain(self, list out)
    @cython.locals(flow=Flow)
    cdef _read(self, int side, item, list out)
    cdef bint _read_unseen(self, int side, Flow flow, record, list out) except -1
    @cython.locals(flow=Flow)
    cdef _content(self, int side, int kind, bytes data, record, list out)
    cdef _handshake(self, int side, bytes data, record, list out)

@cython.locals(packet=int64_t)
cdef _record_in(Chunk chunk, Py_ssize_t at, bytes header, bytes fragment)
