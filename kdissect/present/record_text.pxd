cimport cython
from libc.stdint cimport int64_t
from kdissect.record.records cimport Columns

cdef str _bytes_text(bytes data, str form)
@cython.locals(
    data=bytes, rows=cython.longlong[::1], step=Py_ssize_t, out=list, at=Py_ssize_t, offset=int64_t,
    timestamp=int64_t, key_at=int64_t, key_size=int64_t, value_at=int64_t, value_size=int64_t, key=str, value=str,
    key_length=str, value_length=str, headers=str, sequence=int64_t,
)
cpdef object nested_text(Columns columns, str form)
@cython.locals(
    data=bytes, rows=cython.longlong[::1], step=Py_ssize_t, out=list, at=Py_ssize_t, offset=int64_t,
    timestamp=int64_t, key_at=int64_t, key_size=int64_t, value_at=int64_t, value_size=int64_t, key=str, value=str,
    key_length=str, value_length=str, headers=str, sequence=int64_t, assigned_text=str, time_text=str,
    sequence_text=str, base_offset=object, t0=str, t1=str, t2=str, t3=str, t4=str, t5=str, t6=str, t7=str, t8=str,
    t9=str,
)
cpdef str line_text(
    Columns columns, Py_ssize_t first, Py_ssize_t last, tuple between, object assigned, str form
)
@cython.locals(
    data=bytes, rows=cython.longlong[::1], step=Py_ssize_t, out=list, at=Py_ssize_t, size=int64_t, start=int64_t,
)
cpdef bytes gathered(Columns columns, Py_ssize_t part)
