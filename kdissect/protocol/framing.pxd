cimport cython
from libc.stdint cimport int64_t
from kdissect.model cimport Chunk, Frame

cdef int64_t _PART_BYTES
cdef Py_ssize_t _SHORT

@cython.final
cdef class Framer:
    cdef public object direction
    cdef public object _limits
    cdef public int64_t _most
    cdef public list _parts
    cdef public int64_t _have
    cdef public int64_t _size
    cdef public bint _searching
    cdef public int64_t _skip
    cdef public bint _found_by_search
    cdef public int64_t _cut_at

    @cython.locals(data=bytes, length=int64_t, chunk=Chunk, out=list)
    cpdef feed(self, piece, witness)
    @cython.locals(frame=Frame, raw="const unsigned char*", size=int64_t)
    cpdef Frame frame_of(self, int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, int64_t start, int64_t length)
    @cython.locals(raw="const unsigned char*", taken=int64_t, have=int64_t, size=int64_t, part=Chunk)
    cpdef int64_t span(
        self, int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, int64_t start, int64_t length,
        tuple packets=*
    ) except -1
    cpdef Frame spanned(self)
    cpdef bint is_at_boundary(self) except -1
    cpdef int64_t held_bytes(self) except -1
    @cython.locals(frame=Frame, raw="const unsigned char*")
    cdef Frame _frame_in(self, Chunk chunk, Py_ssize_t begin, int64_t size)
    @cython.locals(chunk=Chunk, left=int64_t, begin=int64_t, size=int64_t)
    cdef _cut_whole_frames(self, list out)
    cpdef list close(self, witness)
    cdef _feed_chunk(self, Chunk chunk, witness, list out)
    @cython.locals(size=int64_t, first=Chunk)
    cdef _cut_frames(self, witness, list out)
    @cython.locals(
        total=int64_t, length=int64_t, parts=list, last=Chunk, used=list, left=int64_t, chunk=Chunk, part=Chunk, payload=bytes,
        pieces=list,
    )
    cpdef _take_frame(self, int64_t size)
    @cython.locals(first=Chunk, completed=Chunk, chunk=Chunk, frame=Frame, packets=list, previous=int64_t)
    cpdef Frame _frame(self, list used, bytes payload, int64_t size)
    @cython.locals(frame=Frame, parts=list, size=int64_t)
    cdef _cut(self, list out, str reason)
    cdef _lose(self)
    @cython.locals(data=bytes, chunk=Chunk, starts=list, at=int64_t, position=int64_t, last=int64_t)
    cdef _search(self, witness, list out, int64_t start=*, bint at_end=*)
    cdef _found(self, int64_t position, list out)
    @cython.locals(first=Chunk, taken=int64_t)
    cdef _forget(self, int64_t count, list out)
    @cython.locals(chunk=Chunk)
    cdef _drop(self, list out, str reason)
    @cython.locals(data=bytes)
    cdef bytes _peek(self, Py_ssize_t count)

@cython.locals(packets=dict, completed=Chunk, chunk=Chunk)
cdef tuple _packets_of(list used)
@cython.locals(raw="const unsigned char*", chunk=Chunk)
cpdef Chunk chunk_in(int64_t packet, int64_t timestamp_ns, int64_t offset, bytes data, int64_t start, int64_t length)
@cython.locals(raw="const unsigned char*", high=int64_t)
cpdef int64_t read_size_prefix(bytes data, Py_ssize_t at) except? -2
cdef Chunk _tail(Chunk chunk, int64_t count)
