"""A key or value → the nodes of a tree, each with its bytes: the framing, then the fields of the schema."""

from __future__ import annotations

from kdissect.faults import fault
from kdissect.model import Fault, Node
from kdissect.payload.avro_tree import draw_avro
from kdissect.payload.avro_values import AvroType
from kdissect.payload.decoder import DecodedPayload, PayloadDecoder, Span
from kdissect.payload.framing import Headers
from kdissect.payload.packed import Unpacker
from kdissect.payload.proto_tree import draw_protobuf


def draw(
    decoder: PayloadDecoder, topic: str, side: str, data: bytes, headers: Headers, shift: int = 0
) -> list[Node]:
    """The nodes of a key or value, which cover its bytes; empty if the decoder does not know the bytes of the
    parts.

    :param shift: is added to positions.
    """
    found = decoder.decode(topic, side, data, headers)
    if found.spans:
        return _of_spans(found.spans, data, shift)
    is_raw = found.format == "protobuf" and found.type is None and not found.compression and found.value
    if found.type is None and not is_raw and found.framing is None:
        return []
    size = 0 if found.framing is None else found.framing.size
    nodes = []
    if size:
        assert found.framing is not None
        about = f"{found.framing.registry} framing"
        nodes.append(Node("(schema)", about, found.framing.schema, shift, size + shift))
    if found.type is None and not is_raw:
        rest = Node("(data)", "bytes", data[size:], size + shift, len(data) + shift)
        rest.fault = _problem(found)
        return [*nodes, rest] if nodes or rest.fault else []
    if found.compression is not None:
        inside = Unpacker().unpack(found.compression, data[size:])
        whole = Node("(unpacked)", found.compression, None, size + shift, len(data) + shift, buffer=inside)
        if inside is not None:
            whole.children = _value(found, inside, found.at, 0)
        return [*nodes, whole]
    if found.at > size:
        nodes.append(Node("(message)", "indexes", found.name, size + shift, found.at + shift))
    return [*nodes, *_value(found, data, found.at, shift)]


def _value(found: DecodedPayload, data: bytes, start: int, shift: int) -> list[Node]:
    name = found.name or found.format
    if isinstance(found.type, AvroType):
        root = draw_avro(found.type, data, start, "(value)")
    else:
        root = draw_protobuf(found.type, data, start, "(value)")
    if root.fault is None:
        root.fault = _problem(found)
    _move(root, shift)
    root.name = f"({name})" if root.children else root.name
    return [root]


def _problem(found: DecodedPayload) -> Fault | None:
    return None if found.problem is None else fault("payload", found.problem, offset=found.offset)


def _of_spans(spans: tuple[Span, ...], data: bytes, shift: int) -> list[Node]:
    """The nodes of spans from another package's decoder, if they are in order and inside the bytes."""
    nodes: list[Node] = []
    at = 0

    def rest(end: int) -> None:
        if end > at:
            nodes.append(Node("(data)", "bytes", data[at:end], at + shift, end + shift))

    for name, start, end in spans:
        if not at <= start <= end <= len(data):
            break
        rest(start)
        nodes.append(Node(name, "bytes", data[start:end], start + shift, end + shift))
        at = end
    rest(len(data))
    return nodes


def _move(node: Node, shift: int) -> None:
    """Add ``shift`` to the ranges of a tree."""
    if not shift:
        return
    waiting = [node]
    while waiting:
        each = waiting.pop()
        each.start += shift
        each.end += shift
        if each.fault is not None and each.fault.offset is not None:
            each.fault = each.fault._replace(offset=each.fault.offset + shift)
        if each.buffer is None:
            waiting += each.children
