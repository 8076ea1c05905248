cimport cython
from libc.stdint cimport int64_t
from kdissect.exchange cimport Exchange
from kdissect.record.batch cimport Batch
from kdissect.session.briefs cimport Brief, PairLayout

cpdef dict place_context(Exchange exchange, place)
@cython.locals(brief=Brief)
cpdef bint may_have_records(event) except -1
cpdef add_batch(dict row, Batch batch)
cdef dict _context(int64_t number, int64_t connection, bint is_request, api, version, tuple about)
@cython.locals(form=PairLayout)
cpdef dict brief_context(Brief brief, tuple told)
