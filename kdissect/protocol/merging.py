"""The definitions of one message class in several Kafka releases → one document.

Rules:

1. A version belongs to the newest release that has it. A newer release takes over the versions it has. An
   older one only adds versions that are still missing.
2. One block covers every version for which it builds the same struct as the version's own release. Names,
   types, nullability, tags, order and defaults must be the same. Newer blocks come first. So a release that
   dropped old versions still describes them if its text has not changed.
3. If two releases lay out the same version differently (more than names and known tags), the older layout is
   kept as an ``era`` block.
4. Releases have no traits. The traits are kept for the API, and for the field of the same name in the same
   struct type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kdissect.protocol import plan
from kdissect.protocol.definition import Block, Document, FieldDefinition, ReleaseSpan, VersionRange
from kdissect.protocol.schema import Struct, build


class KafkaClass(NamedTuple):
    """One of Kafka's JSON definitions."""

    group: str
    """The Kafka module it comes from: ``clients``, ``metadata``, ``group-coordinator`` …"""
    name: str
    api_key: int | None
    """The key of a request or response; None for any other class."""
    block: Block


def merge(known: tuple[str, Document] | None, new: KafkaClass) -> tuple[str, Document]:
    """Merge a definition of a class into its known definitions, by the rules of this module.

    :param known: an API's name or a class's group, and its document; None if the class is new.
    """
    if new.api_key is None:
        group, document = known or (new.group, Document(()))
        blocks = merge_blocks(_same_numbering(document.blocks, new.block), new.block)
        return group, _with_traits(document._replace(blocks=tuple(blocks)), document)
    name = new.name.removesuffix(new.block.kind.capitalize())
    current, document = known or (name, Document(()))
    names = {current, name, *document.also}
    if _age(new.block) >= max((_age(block) for block in document.blocks), default=()):
        current = name
    kinds: dict[str, list[Block]] = {"request": [], "response": []}
    for block in document.blocks:
        kinds[block.kind].append(block)
    kinds[new.block.kind] = merge_blocks(kinds[new.block.kind], new.block)
    also = tuple(sorted(names - {current}))
    merged = Document((*kinds["request"], *kinds["response"]), also, document.api)
    return current, _with_traits(merged, document)


_Place = tuple[str, str, str]
"""The place of a field: ``request``, ``response`` or empty; the type of the struct around it; its name."""


def _with_traits(document: Document, known: Document) -> Document:
    """A document whose fields have the traits of the fields at the same places in another document."""
    traits = {
        place: field
        for block in known.blocks
        for place, field in _places(_side(block), "", block.fields)
        if field.secret or field.holds or field.harmless
    }
    blocks = (
        block._replace(fields=_traited(_side(block), "", block.fields, traits)) for block in document.blocks
    )
    return document._replace(blocks=tuple(blocks))


def _side(block: Block) -> str:
    return block.kind if block.kind in ("request", "response") else ""


def _places(
    side: str, around: str, fields: tuple[FieldDefinition, ...]
) -> Iterator[tuple[_Place, FieldDefinition]]:
    for field in fields:
        yield (side, around, field.name), field
        yield from _places(side, field.element, field.fields)


def _traited(
    side: str, around: str, fields: tuple[FieldDefinition, ...], traits: dict[_Place, FieldDefinition]
) -> tuple[FieldDefinition, ...]:
    out = []
    for field in fields:
        inner = _traited(side, field.element, field.fields, traits)
        known = traits.get((side, around, field.name), field)
        out.append(
            field._replace(fields=inner, secret=known.secret, holds=known.holds, harmless=known.harmless)
        )
    return tuple(out)


def _same_numbering(blocks: tuple[Block, ...], new: Block) -> list[Block]:
    """The blocks that number versions like the new one. Until Kafka 4.0 the version of a coordinator's key
    was its record type. Later definitions have a separate word for it. Versions of the other numbering mean
    something else, and are left out."""
    if new.kind == "coordinator-key":
        return [block for block in blocks if block.kind == new.kind]
    return list(blocks)


class _Owned(NamedTuple):
    """A version with the definition that it belongs to."""

    release: str
    unstable: bool
    block: Block


def _order(release: str) -> tuple[int, ...]:
    """The numbers of a release, for sorting. A vendor's release has its name and a hyphen before the
    numbers."""
    return tuple(int(number) for number in release.rpartition("-")[2].split("."))


def _age(block: Block) -> tuple[int, ...]:
    return max(_order(span.release) for span in block.spans)


def _owned(block: Block) -> Iterator[tuple[int, _Owned]]:
    for span in block.spans:
        for version in range(span.versions.low, span.versions.high + 1):
            yield version, _Owned(span.release, span.unstable, block)


def merge_blocks(blocks: list[Block], new: Block) -> list[Block]:
    """The blocks of one message class with a new one added, newest first, then the eras."""
    if new.kind == "data" and any(block.kind == "coordinator-key" for block in blocks):
        return blocks
    owners = {version: owned for block in blocks if not block.era for version, owned in _owned(block)}
    older = [entry for block in blocks if block.era for entry in _owned(block)]
    for version, owned in _owned(new):
        present = owners.get(version)
        if present is None or _order(owned.release) >= _order(present.release):
            owners[version] = owned
            older += [(version, present)] if present else []
        else:
            older.append((version, owned))
    return _fold(owners) + _eras(owners, older)


def _fold(owners: dict[int, _Owned]) -> list[Block]:
    """Rule 2: the fewest possible blocks, each with all versions for which it is right."""
    left = dict(owners)
    folded = []
    for block in _newest_first(owned.block for owned in owners.values()):
        right = {
            version: owned
            for version, owned in left.items()
            if owned.block == block or _same(build(block, "", version), build(owned.block, "", version))
        }
        if right:
            folded.append(block._replace(spans=_spans(right)))
            left = {version: owned for version, owned in left.items() if version not in right}
    return folded


def _eras(owners: dict[int, _Owned], older: list[tuple[int, _Owned]]) -> list[Block]:
    """Rule 3: the layouts that differ from the owner's, each once, from the newest release that has it."""
    seen = {(version, _layout(owned.block, version)) for version, owned in owners.items()}
    kept: dict[tuple[str, Block], dict[int, _Owned]] = {}
    for version, owned in sorted(older, key=lambda entry: _order(entry[1].release), reverse=True):
        form = (version, _layout(owned.block, version))
        if form not in seen:
            seen.add(form)
            kept.setdefault((owned.release, owned.block), {})[version] = owned
    return [block._replace(spans=_spans(versions), era=True) for (_, block), versions in kept.items()]


def _newest_first(blocks: Iterable[Block]) -> list[Block]:
    return sorted(dict.fromkeys(blocks), key=_age, reverse=True)


def _spans(versions: dict[int, _Owned]) -> tuple[ReleaseSpan, ...]:
    """Runs of versions of the same release, newest release first."""
    spans: list[ReleaseSpan] = []
    order = sorted(versions, key=lambda version: (_order(versions[version].release), -version), reverse=True)
    for version in order:
        release, unstable = versions[version].release, versions[version].unstable
        last = spans[-1] if spans else None
        if last and last[1:] == (release, unstable) and last.versions.high == version - 1:
            spans[-1] = ReleaseSpan(VersionRange(last.versions.low, version), release, unstable)
        else:
            spans.append(ReleaseSpan(VersionRange(version, version), release, unstable))
    return tuple(spans)


def _same(one: Struct, other: Struct) -> bool:
    """Rule 2's identity; ``is`` and ``ignorable`` are not compared."""
    return (
        one.flexible == other.flexible
        and len(one.fields) == len(other.fields)
        and all(
            (a.name, a.type, a.nullable, a.tag, a.default) == (b.name, b.type, b.nullable, b.tag, b.default)
            and (a.struct is None or b.struct is None or _same(a.struct, b.struct))
            for a, b in zip(one.fields, other.fields, strict=True)
        )
        and _layout_of(one.plan) == _layout_of(other.plan)
    )


def _layout(block: Block, version: int) -> Any:
    return _layout_of(build(block, "", version).plan)


def _layout_of(form: plan.Plan) -> Any:
    """The parts of a plan that decide the positions of the untagged fields' bytes."""
    _, fields, tags = form
    return tuple(_form(opcode, argument) for opcode, _, argument in fields), tags is not None


def _form(opcode: int, argument: Any) -> Any:
    if opcode in (plan.RECORDS, plan.COMPACT_RECORDS):
        return opcode - plan.RECORDS + plan.BYTES  # records are bytes; older definitions call them so
    if opcode in (plan.ARRAY, plan.COMPACT_ARRAY):
        return opcode, _form(argument[1], argument[2])
    return (opcode, _layout_of(argument)) if opcode >= plan.STRUCT else opcode
