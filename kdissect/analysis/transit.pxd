cimport cython
from kdissect.analysis.headers cimport Header, stamps_of
from kdissect.analysis.shared_parts cimport SharedSet

@cython.locals(batch=Header)
cdef list _produced_rows(SharedSet found, base, sent, acknowledged, flags, connection)
@cython.locals(batch=Header)
cdef list _fetched_rows(list batches, offset, asked, answered_ns, flags)
