cimport cython
from libc.stdint cimport int64_t
from kdissect.protocol.cursor cimport Cursor
from kdissect.protocol.decode cimport read_count, read_size

cdef int PASS, TEXT, BYTES, NAME, ID, PARTITION, RECORDS, OFFSET, ARRAY, STRUCT
cdef int COMPACT_STRING, COMPACT_RECORDS, COMPACT_ARRAY, STRING

cdef class PlaceWay
cdef class PlaceStep

@cython.final
cdef class PlaceWay:
    cdef public list steps
    cdef public bint is_flexible
    cdef public int64_t width

@cython.final
cdef class PlaceStep:
    cdef public int action
    cdef public int opcode
    cdef public str name
    cdef public bint nullable
    cdef public int64_t width
    cdef public int64_t least
    cdef public PlaceWay inner
    cdef public PlaceStep element

@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Finder:
    cdef public Cursor cursor
    cdef public list found
    cdef public object topic
    cdef public object topic_id
    cdef public object partition

    @cython.locals(step=PlaceStep)
    cpdef through(self, PlaceWay way)
    @cython.locals(cursor=Cursor, action=cython.int, size=int64_t, start=int64_t, offset=int64_t)
    cpdef visit(self, PlaceStep step)
    @cython.locals(cursor=Cursor, count=int64_t, _=int64_t)
    cpdef elements(self, PlaceStep step)
    cpdef inside(self, PlaceWay way)

@cython.locals(finder=Finder)
cpdef object find_places(object struct, Cursor cursor)
