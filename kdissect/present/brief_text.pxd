cimport cython
from libc.stdint cimport int64_t
from kdissect.analysis.waits cimport served_in_brief, waited_in_brief
from kdissect.present.message_text cimport MessageText
from kdissect.present.record_text cimport write_texts, write_value
from kdissect.protocol.json_text cimport JsonText
from kdissect.protocol.survey cimport Survey
from kdissect.session.briefs cimport Brief, PairLayout

cdef bytes _NUMBER, _CLIENT_ID, _PRINCIPAL, _ASKED_PACKET, _ANSWER_PACKET, _ASKED_START, _ASKED_START_ALONE
cdef bytes _ASKED_TIME, _ANSWER_START, _ANSWER_TIME, _LATENCY, _BEHIND, _BEHIND_ALONE, _BEHIND_ID, _NETWORK, _THROTTLE
cdef bytes _SERVED, _WAIT, _WORK, _ASKED_TRANSFER, _ASKED_TRANSFER_ALONE, _ANSWER_TRANSFER, _THINK, _THINK_ALONE
cdef bytes _ASKED_SIZE, _ANSWER_SIZE, _MISSING, _MISSING_ALONE, _ERROR, _NO_ERROR, _ERROR_CLASS, _TOPICS, _GROUPS
cdef bytes _TRANSACTIONAL_IDS, _REQUEST, _RESPONSE, _NO_RESPONSE
cdef int64_t _NOT_KNOWN
cdef Py_ssize_t _MOST_KEPT

@cython.final
cdef class BriefText:
    cdef JsonText _out
    cdef MessageText _messages
    cdef PairLayout _form
    cdef bytes _told
    cdef dict _forms
    cdef dict _connections
    cdef dict _errors

    @cython.locals(out=JsonText, begun=Py_ssize_t, has_answer=cython.bint)
    cpdef bint write(self, Brief brief) except -1
    @cython.locals(out=JsonText, told=bytes, known=tuple)
    cdef int _start(self, Brief brief) except -1
    @cython.locals(told=bytes)
    cdef bytes _connection(self, Brief brief)
    @cython.locals(told=bytes)
    cdef bytes _api(self, PairLayout form)
    @cython.locals(out=JsonText)
    cdef int _times(self, Brief brief, bint has_answer) except -1
    @cython.locals(out=JsonText, is_known=cython.bint, served=int64_t, waited=int64_t, wait=int64_t)
    cdef int _served(self, Brief brief) except -1
    @cython.locals(out=JsonText, seen=Survey)
    cdef int _names(self, Brief brief) except -1
    @cython.locals(codes=tuple, told=bytes)
    cdef bytes _error(self, Survey seen, tuple routine)

cdef int _write_known(JsonText out, int64_t number) except -1
