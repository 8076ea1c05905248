"""A segment, or a metadata snapshot → its batches, in memory that does not depend on its size.

The rules:

* The file is read in parts of a MiB. A larger batch is read as a whole, up to the limit.
* If a batch announces more bytes than the file has, its end is torn: by a crash, or because the file is being
  written. Zeros up to the end are left by ``log.preallocate`` or a crash.
* The boundary is lost if no batch can begin at a place, or if a batch has a wrong checksum and no batch
  follows it. Then the next batch is searched for: offsets that continue, and the right checksum. The bytes
  that were skipped are reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.logdir.search import HEAD, PART, BatchSearch, ReadAt, announced_size, goes_on, zeros_to_end
from kdissect.model import Fault
from kdissect.record.batch import Batch
from kdissect.record.sets import frame_defect, read_record_set
from kdissect.wording import plural

Found = tuple[int, Batch | Fault]
"""A batch, or a fault, with its position in the file."""


def read_batches(
    read_at: ReadAt, size: int, limits: Limits = DEFAULTS, base_offset: int | None = None
) -> Iterator[Found]:
    """The batches, and the faults of the file. Faults of a batch stay in the batch.

    :param base_offset: the first offset according to the file's name.
    """
    return _SegmentState(read_at, size, limits, None if base_offset is None else base_offset - 1).read()


class _SegmentState:
    """The state of reading: continues at :attr:`position`; :attr:`last` is the last offset so far."""

    def __init__(self, read_at: ReadAt, size: int, limits: Limits, last: int | None) -> None:
        self.read_at = read_at
        self.size = size
        self.limits = limits._replace(elements=max(1, limits.elements))
        self.search = BatchSearch(read_at, size, self.limits)
        self.last = last
        self.is_named = last is not None
        """Whether :attr:`last` still comes from the file's name, not from a batch."""
        self.position = 0

    def read(self) -> Iterator[Found]:
        want = PART
        while self.position < self.size:
            want = min(want, self.size - self.position)
            part = self.read_at(self.position, want)
            if len(part) < want:
                there = self.position + len(part)
                yield (
                    there,
                    fault(
                        "cut-short",
                        f"the file had {plural(self.size, 'byte')}, {there:,} could be read",
                        offset=there,
                    ),
                )
                self.size = there
            begin, want = self.position, PART
            yield from self._whole_batches(part)
            rest = part[self.position - begin :] if self.position >= begin else b""
            defect = frame_defect(rest, 0) if rest else None
            if defect is None:
                continue
            if defect.kind != "partial-batch":
                yield from self._no_batch(defect)
                continue
            left = self.size - self.position
            announced = announced_size(rest)
            if announced is None or announced > left:
                # Too few bytes to judge a batch while more can be read.
                if left > len(rest) and len(rest) < HEAD:
                    continue
                yield from self._torn(left, announced)
            elif announced > self.limits.frame_bytes:
                yield from self._too_large(announced)
            else:
                want = announced

    def _whole_batches(self, part: bytes) -> Iterator[Found]:
        """The batches that are complete in ``part``, up to the first whose size cannot be trusted."""
        start = self.position
        for batch in read_record_set(part, self.limits).batches:
            if batch.partial:
                return
            position = start + batch.position
            # The base offset of a wrapper of magic 0 or 1 is unknown until it is unpacked.
            first = batch.base_offset if batch.magic >= 2 else batch.last_offset
            assert first is not None
            if self.last is not None and min(first, batch.last_offset) <= self.last:
                before = (
                    f"by its name the file begins at {self.last + 1}"
                    if self.is_named
                    else f"{self.last} came before"
                )
                text = f"the batch has offsets {first} to {batch.last_offset}, and {before}"
                yield position, fault("bad-batch", text, layer="file", offset=position)
            yield position, batch
            self.position = start + batch.end
            if batch.crc_valid is False and not goes_on(self.read_at, self.position, self.size, self.last):
                found = self._search(position + 1)
                if found is not None:
                    yield position, self._skipped(position, found)
                    self.position = found
                    return
            if batch.crc_valid:
                self.last, self.is_named = batch.last_offset, False

    def _no_batch(self, defect: Fault) -> Iterator[Found]:
        start = self.position
        if zeros_to_end(self.read_at, start, self.size):
            text = f"{plural(self.size - start, 'byte')} of zero up to the end"
            yield start, fault("trailing-bytes", text, offset=start)
            self.position = self.size
            return
        reason = defect.message.partition(";")[0]
        found = self._search(start + 1)
        if found is None:
            text = f"{reason}; not read: {plural(self.size - start, 'byte')} up to the end"
        else:
            text = (
                f"{reason}; not read: {plural(found - start, 'byte')} up to the next batch "
                "with a fitting checksum"
            )
        yield start, defect._replace(layer="file", message=text, offset=start)
        self.position = self.size if found is None else found

    def _torn(self, left: int, announced: int | None) -> Iterator[Found]:
        """Report that the file ends inside the batch, or that its length is wrong."""
        start = self.position
        text = (
            "where a batch should begin" if announced is None else f"of a batch that announces {announced:,}"
        )
        yield start, fault("torn-tail", f"the file ends after {plural(left, 'byte')} {text}", offset=start)
        data = self.read_at(start, min(left, self.limits.frame_bytes))
        for batch in read_record_set(data, self.limits).batches:
            if batch.partial and batch.position == 0:
                yield start, batch
        found = self._search(start + 1)
        if found is not None:
            yield start, self._skipped(start, found)
        self.position = self.size if found is None else found

    def _too_large(self, announced: int) -> Iterator[Found]:
        start = self.position
        text = f"a batch of {announced:,} bytes, over the limit of {self.limits.frame_bytes:,}, is not read"
        yield start, fault("bad-length", text, offset=start)
        self.position = start + announced
        if not goes_on(self.read_at, self.position, self.size, self.last):
            found = self._search(start + 1)
            if found is not None:
                yield start, self._skipped(start, found)
                self.position = found

    def _search(self, position: int) -> int | None:
        return self.search.find(position, self.size, self.last)

    def _skipped(self, start: int, found: int) -> Fault:
        text = f"no batch begins where this one ends; the next batch with the right checksum is at {found}"
        return fault("skipped", text, offset=start, layer="file")
