cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.headers cimport Header, stamps_of
from kdissect.analysis.labels cimport Labels
from kdissect.analysis.ledgers cimport Ledgers, known
from kdissect.analysis.shared_parts cimport SharedSet, follows_log, record_sets
from kdissect.exchange cimport Exchange
from kdissect.message cimport Message
from kdissect.names cimport is_metadata_topic

cdef int64_t _CONTROL, _LOG_APPEND_TIME, _MOST_MS, _NONE, _CREATED

@cython.locals(labels=Labels, exchange=Exchange, flags=int64_t)
cdef _take(list exchanges, int64_t counts, transit)
@cython.locals(response=Message, found=SharedSet, key=tuple, row=tuple, produced=Ledgers)
cdef _take_produced(Exchange exchange, Message request, int64_t flags, Labels labels, transit)
@cython.locals(
    request=Message, named=dict, body=dict, topic=dict, partition=dict, names_all=bint, replica_id=int64_t,
    asked=dict, fetched=Ledgers, key=tuple, own=int64_t
)
cdef _take_fetched(Exchange exchange, int64_t flags, reader, Labels labels, transit)
@cython.locals(sets=dict, each=SharedSet, topic=dict, partition=dict, key=tuple, found=SharedSet, fetched=Ledgers)
cdef _take_answer(
    Exchange exchange, Message response, asked_ns, dict named, int64_t flags, Labels labels, transit
)
@cython.locals(heights=dict, before=tuple, is_higher=bint, is_beyond=bint, rises=Ledgers)
cdef _rise(tuple place, high, ns, transit)
cdef _topic(Labels labels, name, topic_id)
@cython.locals(batch=Header)
cdef list _produced_rows(SharedSet found, base, sent, acknowledged, flags, connection)
@cython.locals(batch=Header)
cdef list _fetched_rows(list batches, offset, asked, answered_ns, flags)
@cython.locals(first=int64_t, largest=int64_t, crc=int64_t)
cdef tuple _content(Header batch, int64_t flags)
cdef bint _is_metadata(topic) except -1
