"""json_text.py, compiled: the text is kept in C memory.

Ranges of bytes are checked once, at the beginning of a method. Room is reserved before anything is written.
"""

from sys import byteorder

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    LEAST = 4_096  # room at the beginning
    KEPT = 1_048_576  # the most room kept for the next text
    PIECE = 4_096  # bytes escaped at a time: each may take six in the text

cdef const unsigned char* STANDARD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef const unsigned char* URL_SAFE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
cdef const unsigned char* PAIRS = (  # 00 to 99
    b"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
    b"4950515253545556575859606162636465666768697071727374757677787980818283848586878889909192939495969798"
    b"99"
)
cdef const unsigned char* DIGITS = b"0123456789abcdef"

cdef uint64_t ONES = 0x0101010101010101
cdef uint64_t HIGHS = 0x8080808080808080
cdef bint IS_LITTLE = byteorder == "little"


cdef class JsonText:
    def __cinit__(self):
        self._text = NULL
        self._used = self._room = 0

    def __dealloc__(self):
        free(self._text)

    cdef int _reserve(self, Py_ssize_t more) except -1:
        """Make sure that there is room for ``more`` bytes."""
        cdef Py_ssize_t room
        cdef unsigned char* grown
        if more <= self._room - self._used:
            return 0
        if more > PY_SSIZE_T_MAX // 2 - self._used:
            raise MemoryError
        room = max(self._used + more, 2 * self._room, LEAST)
        grown = <unsigned char*> realloc(self._text, room)
        if grown == NULL:
            raise MemoryError
        self._text, self._room = grown, room
        return 0

    cpdef Py_ssize_t size(self) noexcept:
        return self._used

    cpdef cut(self, Py_ssize_t size):
        if 0 <= size < self._used:
            self._used = size

    cpdef bytes since(self, Py_ssize_t size):
        if not 0 <= size < self._used:
            return b""
        return PyBytes_FromStringAndSize(<char*> self._text + size, self._used - size)

    cpdef bint is_since(self, Py_ssize_t size, bytes text) noexcept:
        cdef Py_ssize_t length = PyBytes_GET_SIZE(text)
        if size < 0 or length != self._used - size:
            return False
        return not length or memcmp(self._text + size, PyBytes_AS_STRING(text), length) == 0

    cpdef int move(self, Py_ssize_t start, Py_ssize_t to) except -1:
        cdef Py_ssize_t size = self._used - start
        if not 0 <= to <= start <= self._used:
            raise IndexError("a place outside of the text")
        if size and to < start:
            self._reserve(size)
            memmove(self._text + to + size, self._text + to, self._used - to)
            memcpy(self._text + to, self._text + start + size, size)
        return 0

    cpdef bytes take(self):
        cdef bytes found
        if not self._used:
            return b""
        found = PyBytes_FromStringAndSize(<char*> self._text, self._used)
        self._used = 0
        if self._room > KEPT:
            free(self._text)
            self._text = NULL
            self._room = 0
        return found

    cpdef int put(self, bytes text) except -1:
        cdef Py_ssize_t size = PyBytes_GET_SIZE(text)
        if self._room - self._used < size:
            self._reserve(size)
        memcpy(self._text + self._used, PyBytes_AS_STRING(text), size)
        self._used += size
        return 0

    cpdef int add(self, JsonText other) except -1:
        cdef Py_ssize_t size = other._used
        self._reserve(size)
        if size:
            memcpy(self._text + self._used, other._text, size)
        self._used += size
        return 0

    cpdef int part(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1:
        _check(data, start, size)
        self._reserve(size)
        memcpy(self._text + self._used, PyBytes_AS_STRING(data) + start, size)
        self._used += size
        return 0

    cpdef int number(self, int64_t value) except -1:
        cdef unsigned char[24] digits
        cdef int at = 24, pair
        cdef uint64_t left = <uint64_t> value, rest
        if 0 <= value < 10:
            if self._room == self._used:
                self._reserve(1)
            self._text[self._used] = <unsigned char> (48 + value)
            self._used += 1
            return 0
        if value < 0:
            left = 0 - left
        while left > 9:
            rest = left // 100
            pair = 2 * <int> (left - 100 * rest)
            at -= 2
            digits[at] = PAIRS[pair]
            digits[at + 1] = PAIRS[pair + 1]
            left = rest
        if left or at == 24:
            at -= 1
            digits[at] = <unsigned char> (48 + left)
        if value < 0:
            at -= 1
            digits[at] = 45
        if self._room - self._used < 24:
            self._reserve(24)
        memcpy(self._text + self._used, digits + at, 24 - at)
        self._used += 24 - at
        return 0

    cpdef int digits(self, int64_t value, Py_ssize_t count) except -1:
        cdef Py_ssize_t most = min(max(count, 1), 20), begun = self._used, missing
        cdef unsigned char* to
        self.number(value)
        missing = most - (self._used - begun)
        if missing > 0:
            self._reserve(missing)
            to = self._text + begun
            memmove(to + missing, to, self._used - begun)
            memset(to, 48, missing)
            self._used += missing
        return 0

    cpdef int fixed(self, int64_t value, Py_ssize_t count) except -1:
        cdef unsigned char[24] digits
        cdef int at = 24, least = 22 - <int> count
        cdef uint64_t left = <uint64_t> value
        while at > least or left:
            if at == 24 - count:
                at -= 1
                digits[at] = 46
            at -= 1
            digits[at] = <unsigned char> (48 + left % 10)
            left //= 10
        if self._room - self._used < 24:
            self._reserve(24)
        memcpy(self._text + self._used, digits + at, 24 - at)
        self._used += 24 - at
        return 0

    cpdef int text(self, str text) except -1:
        cdef Py_ssize_t size
        cdef const char* found = PyUnicode_AsUTF8AndSize(text, &size)
        self._reserve(size)
        memcpy(self._text + self._used, found, size)
        self._used += size
        return 0

    cpdef int fill(self, Py_ssize_t start, Py_ssize_t count, bint before) except -1:
        cdef Py_ssize_t at = start if before else self._used
        if count <= 0:
            return 0
        if not 0 <= at <= self._used:
            raise IndexError("a place outside of the text")
        self._reserve(count)
        memmove(self._text + at + count, self._text + at, self._used - at)
        memset(self._text + at, 32, count)
        self._used += count
        return 0

    cpdef int trim(self) except -1:
        while self._used and self._text[self._used - 1] == 32:
            self._used -= 1
        return 0

    cpdef bint string(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1:
        cdef const unsigned char* at
        cdef const unsigned char* end
        cdef const unsigned char* piece
        cdef const unsigned char* behind
        cdef unsigned char* to
        cdef unsigned char byte
        cdef uint64_t eight, found
        cdef Py_ssize_t before = self._used, step
        cdef unsigned int code
        _check(data, start, size)
        at = <const unsigned char*> PyBytes_AS_STRING(data) + start
        end = at + size
        behind = <const unsigned char*> PyBytes_AS_STRING(data) + PyBytes_GET_SIZE(data)
        while True:
            piece = end if end - at <= PIECE else at + PIECE
            self._reserve(6 * (piece - at) + 32)
            to = self._text + self._used
            if self._used == before:
                to[0] = 34
                to += 1
            while at < piece:
                # Eight bytes are copied at a time; only those before the first byte that is not plain count. A
                # byte is not plain below a space, as a quote or backslash, or above a tilde. The sums mark the
                # first such byte exactly; their marks of later bytes may be wrong.
                found = 0
                while piece - at >= 8:
                    memcpy(&eight, at, 8)
                    memcpy(to, &eight, 8)
                    found = _unusual(eight)
                    if found:
                        break
                    at += 8
                    to += 8
                if found:
                    step = _first(found)
                    at += step
                    to += step
                elif at < piece and behind - at >= 8:
                    # Fewer are left in the piece, but more bytes follow it: the same, without a loop.
                    memcpy(&eight, at, 8)
                    memcpy(to, &eight, 8)
                    found = _unusual(eight)
                    step = _first(found) if found else 8
                    if step > piece - at:
                        step = piece - at
                    at += step
                    to += step
                if at >= piece:
                    break
                byte = at[0]
                if 32 <= byte < 127 and byte != 34 and byte != 92:
                    to[0] = byte
                    to += 1
                    at += 1
                    continue
                if byte == 34 or byte == 92 or byte == 10:  # as in most texts that are JSON themselves
                    to[0] = 92
                    to[1] = 110 if byte == 10 else byte
                    to += 2
                    at += 1
                    continue
                if byte < 128:
                    at += 1
                    code = byte
                else:
                    code = _code(&at, end)
                    if not code:
                        self._used = before
                        self._reserve(11)
                        memcpy(self._text + self._used, b'{"base64":', 10)
                        self._used += 10
                        self.base64(data, start, size)
                        self._reserve(1)
                        self._text[self._used] = 125
                        self._used += 1
                        return False
                self._used = to - self._text
                self._escaped(code)
                to = self._text + self._used
            if at >= end:
                to[0] = 34  # there was room for more than all of it
                self._used = to + 1 - self._text
                return True
            self._used = to - self._text

    cdef int _escaped(self, unsigned int code) except -1:
        """Append the escape of a character."""
        cdef unsigned char* to
        cdef unsigned char short = 0
        self._reserve(12)
        to = self._text + self._used
        to[0] = 92
        if code == 34 or code == 92:
            short = <unsigned char> code
        elif code == 10:
            short = 110
        elif code == 13:
            short = 114
        elif code == 9:
            short = 116
        elif code == 8:
            short = 98
        elif code == 12:
            short = 102
        if short:
            to[1] = short
            self._used += 2
            return 0
        if code > 0xFFFF:
            code -= 0x10000
            _hex4(to + 1, 0xD800 | (code >> 10))
            to[6] = 92
            _hex4(to + 7, 0xDC00 | (code & 0x3FF))
            self._used += 12
            return 0
        _hex4(to + 1, code)
        self._used += 6
        return 0

    cpdef int base64(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1:
        _check(data, start, size)
        self._reserve(1)
        self._text[self._used] = 34
        self._used += 1
        self._base64(<const unsigned char*> PyBytes_AS_STRING(data) + start, size, STANDARD)
        self._reserve(1)
        self._text[self._used] = 34
        self._used += 1
        return 0

    cdef int _base64(self, const unsigned char* data, Py_ssize_t size, const unsigned char* letters) except -1:
        """Append bytes in base64, padded."""
        cdef unsigned char* to
        cdef unsigned int three
        cdef Py_ssize_t at = 0
        self._reserve(size // 3 * 4 + 4)
        to = self._text + self._used
        while size - at >= 3:
            three = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2]
            to[0] = letters[three >> 18]
            to[1] = letters[(three >> 12) & 63]
            to[2] = letters[(three >> 6) & 63]
            to[3] = letters[three & 63]
            to += 4
            at += 3
        if at < size:
            three = data[at] << 16
            if size - at == 2:
                three |= data[at + 1] << 8
            to[0] = letters[three >> 18]
            to[1] = letters[(three >> 12) & 63]
            to[2] = letters[(three >> 6) & 63] if size - at == 2 else 61
            to[3] = 61
            to += 4
        self._used = to - self._text
        return 0

    cpdef int hexadecimal(self, bytes data, Py_ssize_t start, Py_ssize_t size) except -1:
        cdef const unsigned char* raw
        cdef unsigned char* to
        cdef Py_ssize_t at
        _check(data, start, size)
        raw = <const unsigned char*> PyBytes_AS_STRING(data) + start
        self._reserve(2 * size + 2)
        to = self._text + self._used
        to[0] = 34
        for at in range(size):
            to[2 * at + 1] = DIGITS[raw[at] >> 4]
            to[2 * at + 2] = DIGITS[raw[at] & 15]
        to[2 * size + 1] = 34
        self._used += 2 * size + 2
        return 0

    cpdef int uuid(self, bytes data, Py_ssize_t start) except -1:
        _check(data, start, 16)
        self._reserve(32)
        self._text[self._used] = 34
        self._used += 1
        self._base64(<const unsigned char*> PyBytes_AS_STRING(data) + start, 16, URL_SAFE)
        self._used -= 1  # the quote replaces one letter of the padding
        self._text[self._used - 1] = 34
        return 0


cdef inline int _check(bytes data, Py_ssize_t start, Py_ssize_t size) except -1:
    """Check that a range is inside these bytes."""
    if start < 0 or size < 0 or size > PyBytes_GET_SIZE(data) - start:
        raise IndexError("a range outside of the bytes")
    return 0


cdef inline uint64_t _unusual(uint64_t eight) noexcept:
    """Mark the highest bit of each of eight bytes that a string must escape. Only the first mark is exact:
    borrows and carries begin at that byte, and change the later ones."""
    cdef uint64_t found = (eight - 32 * ONES) | ((eight ^ (34 * ONES)) - ONES)
    found |= ((eight ^ (92 * ONES)) - ONES) | (eight + ONES) | eight
    return found & HIGHS


cdef inline Py_ssize_t _first(uint64_t highs) noexcept:
    """The place in memory of the first of eight bytes whose highest bit is set."""
    cdef unsigned char[8] bytes_of
    cdef Py_ssize_t at = 0
    if IS_LITTLE:
        highs = ((highs & (0 - highs)) >> 7) - 1  # ones below the lowest mark
        return <Py_ssize_t> (((highs & ONES) * ONES) >> 56)
    memcpy(bytes_of, &highs, 8)
    while at < 7 and not bytes_of[at]:
        at += 1
    return at


cdef inline void _hex4(unsigned char* to, unsigned int code) noexcept:
    """Write ``u`` and four digits."""
    to[0] = 117
    to[1] = DIGITS[(code >> 12) & 15]
    to[2] = DIGITS[(code >> 8) & 15]
    to[3] = DIGITS[(code >> 4) & 15]
    to[4] = DIGITS[code & 15]


cdef inline unsigned int _code(const unsigned char** where, const unsigned char* end) noexcept:
    """Read the character beyond ASCII that begins there. 0 if it is not UTF-8: shortest form only, no
    surrogates, nothing above U+10FFFF (RFC 3629)."""
    cdef const unsigned char* at = where[0]
    cdef unsigned int first = at[0], code
    cdef Py_ssize_t left = end - at
    if first < 0xC2 or first > 0xF4 or left < 2 or (at[1] & 0xC0) != 0x80:
        return 0
    if first < 0xE0:
        where[0] = at + 2
        return ((first & 0x1F) << 6) | (at[1] & 0x3F)
    if left < 3 or (at[2] & 0xC0) != 0x80:
        return 0
    if first < 0xF0:
        code = ((first & 0x0F) << 12) | ((at[1] & 0x3F) << 6) | (at[2] & 0x3F)
        if code < 0x800 or 0xD800 <= code <= 0xDFFF:
            return 0
        where[0] = at + 3
        return code
    if left < 4 or (at[3] & 0xC0) != 0x80:
        return 0
    code = ((first & 0x07) << 18) | ((at[1] & 0x3F) << 12) | ((at[2] & 0x3F) << 6) | (at[3] & 0x3F)
    if code < 0x10000 or code > 0x10FFFF:
        return 0
    where[0] = at + 4
    return code
