cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.headers cimport Header
from kdissect.analysis.shared_parts cimport SharedSet, record_sets, topics_of
from kdissect.analysis.slices cimport SlicedAlike, SlicedSums, count_each
from kdissect.analysis.waits cimport split
from kdissect.exchange cimport Exchange

@cython.locals(exchange=Exchange, ns=int64_t, is_answered=bint, has_errors=bint, groups=list, topics=list, kinds=dict)
cdef _count(list exchanges, profile)
@cython.locals(which=tuple, slices=SlicedAlike, waiting=dict)
cdef _count_alike(
    Exchange exchange, int64_t ns, api, bint has_errors, broker_ns, tuple groups, tuple topics, profile
)
@cython.locals(
    each=SharedSet, batch=Header, totals=tuple, found=list, at=Py_ssize_t, sums=SlicedSums, count=int64_t,
    codecs=dict, is_written=bint,
)
cdef _count_batches(Exchange exchange, int64_t ns, done, profile)
