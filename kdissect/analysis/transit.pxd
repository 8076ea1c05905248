cimport cython
from kdissect.analysis.headers cimport Header, stamps_of
from kdissect.analysis.sets cimport SharedSet

@cython.locals(batch=Header)
cdef list _sent(SharedSet found, base, sent, acknowledged, flags, connection)
@cython.locals(batch=Header)
cdef list _came(list batches, offset, asked, came, flags)
