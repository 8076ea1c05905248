cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Chunk
from kdissect.tls.flow cimport Flow
from kdissect.tls.keying cimport Keying
from kdissect.tls.records cimport RecordReader, length_at
from kdissect.tls.stage cimport TlsStage
from kdissect.tls.summary cimport SeenHandshake

cdef int _ALERT, _APPLICATION_DATA, _CHANGE_CIPHER_SPEC, _HANDSHAKE, _HEADER_BYTES

cdef class Tls(TlsStage):
    cdef public tuple _flows
    cdef public bint _gave_up
    cdef public Keying _keying
    cdef public int _least_skipped
    cdef public object _limits
    cdef public int64_t _retries
    cdef public object _secrets
    cdef public object _waiting
    cdef public int64_t held_bytes
    cdef public int64_t read_bytes

    @cython.locals(out=list, flow=Flow, chunk=Chunk, size=Py_ssize_t, at=Py_ssize_t)
    cpdef list feed(self, int side, piece)
    @cython.locals(
        flow=Flow, reader=RecordReader, at=Py_ssize_t, stop=Py_ssize_t, raw="const unsigned char*", keying=Keying,
        size=Py_ssize_t, body=Py_ssize_t, end=Py_ssize_t, kind=cython.int, where=int64_t,
    )
    cpdef Py_ssize_t take(
        self, int side, int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, Py_ssize_t start,
        Py_ssize_t length, list out,
    ) except -1
    cpdef bint passes_over(self) except -1
    cpdef bint is_waiting(self) except -1
    @cython.locals(flow=Flow)
    cdef _note_dark(self)
    @cython.locals(
        data=bytes, at=Py_ssize_t, size=Py_ssize_t, length=Py_ssize_t, body=Py_ssize_t, end=Py_ssize_t, header=bytes,
        fragment=bytes, kind=cython.int, content=bytes, made=Chunk,
    )
    cdef Py_ssize_t _feed_ready(self, int side, Flow flow, Chunk chunk, list out) except -1
    cdef Flow _flow(self, int side)
    @cython.locals(one=Flow, other=Flow)
    cpdef int64_t kept(self) except -1
    @cython.locals(flow=Flow, must_wait=cython.bint)
    cdef _take(self, int side, item, list out)
    @cython.locals(seen=SeenHandshake, facts=dict)
    cpdef summary(self, closed_by=*, closed_ns=*)
    @cython.locals(out=list, flow=Flow, reader=RecordReader, side=cython.int)
    cpdef list close(self)
    cdef bint _is_in_turn(self, Flow flow) except -1
    cdef bint _is_clear(self, Flow flow, int kind) except -1
    cdef _drain(self, list out)
    @cython.locals(flow=Flow)
    cdef _read(self, int side, item, list out)
    cdef bint _read_unseen(self, int side, Flow flow, record, list out) except -1
    @cython.locals(flow=Flow)
    cdef _content(self, int side, int kind, bytes data, record, list out)
    cdef _alert(self, int side, bytes data, packet)
    @cython.locals(keying=Keying, flow=Flow)
    cdef _handshake(self, int side, bytes data, int64_t offset, int64_t packet, int64_t timestamp_ns, list out)

@cython.locals(packet=int64_t)
cdef _record_in(Chunk chunk, Py_ssize_t at, bytes header, bytes fragment)
