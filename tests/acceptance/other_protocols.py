"""What other protocols say on a connection, made by their specifications: who says it, and the bytes."""

from __future__ import annotations

import random
from struct import pack

Turn = tuple[str, bytes]
"""``client`` or ``server``, and what it says."""


def _int32_sized(*messages: bytes) -> bytes:
    return b"".join(pack(">i", len(message)) + message for message in messages)


def http_1() -> list[Turn]:
    ask = b"GET /metrics HTTP/1.1\r\nHost: broker:9092\r\nAccept: */*\r\n\r\n"
    return [("client", ask), ("server", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nup 1")] * 3


def http_2() -> list[Turn]:
    """RFC 9113: the preface and SETTINGS; the server's first frame looks like a small size."""
    settings = bytes.fromhex("000012 04 00 00000000 0003 00000064 0004 0000ffff 0006 00004000")
    acknowledged = bytes.fromhex("000000 04 01 00000000")
    headers = bytes.fromhex("00000c 01 05 00000001 828684410871 756572792e62")
    return [
        ("client", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings),
        ("server", settings + acknowledged),
        ("client", acknowledged + headers),
    ]


def tls() -> list[Turn]:
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(range(195))
    return [("client", hello), ("server", bytes.fromhex("160303007a020000760303") + bytes(range(118)))]


def redis() -> list[Turn]:
    return [("client", b"*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n"), ("server", b"$5\r\nvalue\r\n")] * 4


def postgresql(ssl_request: bool = False) -> list[Turn]:
    """The startup message is an int32 length and 0x00030000: as Kafka, Metadata v0."""
    parameters = b"user\0postgres\0database\0orders\0application_name\0psql\0client_encoding\0UTF8\0\0"
    startup = pack(">ii", len(parameters) + 8, 196_608) + parameters
    said = [
        ("client", startup),
        ("server", b"R\0\0\0\x08\0\0\0\0S\0\0\0\x16application_name\0\0Z\0\0\0\x05I"),
    ]
    said += [("client", b"Q\0\0\0\x0dselect 1\0"), ("server", b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I")]
    return [("client", pack(">ii", 8, 80_877_103)), ("server", b"N"), *said] if ssl_request else said


def mysql() -> list[Turn]:
    """The server speaks first."""
    greeting = (
        b"\x0a8.0.36\0" + pack("<I", 11) + b"abcdefgh\0" + b"\xff\xf7\xff\x02\0\xff\xdf\x15" + bytes(10)
    )
    return [
        ("server", pack("<I", len(greeting)) + greeting),
        ("client", b"\x20\0\0\x01\x8d\xa2\x0a\0\0\0\0\x01\xff" + bytes(23)),
        ("server", b"\x07\0\0\x02\0\0\0\x02\0\0\0"),
        ("client", b"\x09\0\0\0\x03select 1"),
    ]


def amqp() -> list[Turn]:
    return [
        ("client", b"AMQP\0\0\x09\x01"),
        ("server", b"\x01\0\0\0\0\0\x1c\0\x0a\0\x0a\0\x09" + bytes(24) + b"\xce"),
    ]


def mqtt() -> list[Turn]:
    return [("client", b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04test"), ("server", b"\x20\x02\0\0")]


def ssh() -> list[Turn]:
    said = b"SSH-2.0-OpenSSH_9.2\r\n"
    return [("server", said), ("client", said), ("client", b"\0\0\x05\xdc\x0a\x14" + bytes(range(256)) * 5)]


def dns_over_tcp() -> list[Turn]:
    """RFC 1035, 4.2.2: an int16 length."""
    question = bytes.fromhex("1a2b 0100 0001 0000 0000 0000") + b"\x06broker\x07example\0\0\x01\0\x01"
    answer = question.replace(bytes.fromhex("0100 0001 0000"), bytes.fromhex("8180 0001 0001"))
    answer += bytes.fromhex("c00c 0001 0001 0000003c 0004 0a000002")
    return [("client", pack(">H", len(question)) + question), ("server", pack(">H", len(answer)) + answer)]


def cassandra() -> list[Turn]:
    """The native protocol, version 4."""
    startup = b"\0\x01\0\x0bCQL_VERSION\0\x053.0.0"
    return [
        ("client", b"\x04\0\0\0\x05" + pack(">i", 0)),
        ("server", b"\x84\0\0\0\x06" + pack(">i", 4) + b"\0\0\0\0"),
        ("client", b"\x04\0\0\x01\x01" + pack(">i", len(startup)) + startup),
        ("server", b"\x84\0\0\x01\x02" + pack(">i", 0)),
    ]


def zookeeper(seed: int = 0, first_xid: int = 1) -> list[Turn]:
    """Jute: an int32 length and small int32s, so that nearly all begins like a Produce request of a low
    version with an empty client id."""
    randomly = random.Random(seed)
    said = [
        ("client", _int32_sized(pack(">iqiqi16s?", 0, 0, 30_000, 0, 16, bytes(16), False))),
        (
            "server",
            _int32_sized(pack(">iiqi16s?", 0, 30_000, 0x1000_0ABC_0001, 16, randomly.randbytes(16), False)),
        ),
    ]
    for xid in range(first_xid, first_xid + 40):
        operation, body, answer = _zookeeper_operation(randomly)
        said.append(("client", _int32_sized(pack(">ii", xid, operation) + body)))
        said.append(("server", _int32_sized(pack(">iqi", xid, 300 + xid, 0) + answer)))
    return said


def _zookeeper_operation(randomly: random.Random) -> tuple[int, bytes, bytes]:
    def text(value: bytes) -> bytes:
        return pack(">i", len(value)) + value

    path = randomly.choice([b"/", b"/a", b"/brokers", b"/brokers/ids/1", b"/controller", b"/config/topics/t"])
    data = randomly.choice([b"", b"x", b"ab", b"{}", b'{"version":1}', bytes(8)])
    status = pack(">qqqqiiiqiiq", 5, 9, 1, 1, randomly.randrange(3), 0, 0, 0, len(data), 0, 5)
    children = [text(name) for name in randomly.choice([[], [b"1"], [b"ids", b"topics", b"seqid"]])]
    listed = pack(">i", len(children)) + b"".join(children)
    watch = pack(">?", randomly.random() < 0.5)
    return randomly.choice(
        [
            (4, text(path) + watch, text(data) + status),  # getData
            (3, text(path) + watch, status),  # exists
            (8, text(path) + watch, listed),  # getChildren
            (12, text(path) + watch, listed + status),  # getChildren2
            (5, text(path) + text(data) + pack(">i", randomly.randrange(-1, 3)), status),  # setData
            (2, text(path) + pack(">i", randomly.randrange(-1, 3)), b""),  # delete
            (11, b"", b""),  # ping
        ]
    )


def protobuf_frames(seed: int = 0) -> list[Turn]:
    """An int32 length and a message: varint, text and nested fields."""
    randomly = random.Random(seed)
    said: list[Turn] = []
    for number in range(20):
        name = b"orders-%d" % randomly.randrange(10_000)
        message = b"\x08" + bytes((number,)) + b"\x12" + bytes((len(name),)) + name
        said.append((("client", "server")[number % 2], _int32_sized(message)))
    return said


def small_integers(seed: int = 0) -> list[Turn]:
    """An int32 length and int32s: a kind, a number, a count, and some more."""
    randomly = random.Random(seed)
    said: list[Turn] = []
    for number in range(60):
        values = [
            randomly.randrange(16),
            number,
            *(randomly.randrange(4) for _ in range(randomly.randrange(9))),
        ]
        said.append((("client", "server")[number % 2], _int32_sized(pack(f">{len(values)}i", *values))))
    return said


def rpc_with_names(seed: int = 0) -> list[Turn]:
    """An int32 length, an operation and flags of 16 bits, a running number and the name of what is called;
    the answer begins with the number. But for the names that differ these are Kafka's headers."""
    randomly = random.Random(seed)
    said: list[Turn] = []
    for number in range(40):
        name = b"service.Method%d" % randomly.randrange(1_000_000)
        operation = randomly.choice((1, 2, 3, 600, 12_000))
        body = randomly.randbytes(randomly.randrange(40))
        said.append(("client", _int32_sized(pack(">hhih", operation, 40, number, len(name)) + name + body)))
        said.append(("server", _int32_sized(pack(">i", number) + body)))
    return said


def rpc_with_its_number_first(seed: int = 0) -> list[Turn]:
    """An int32 length and a running number, in both directions; a text behind them."""
    randomly = random.Random(seed)
    said: list[Turn] = []
    for number in range(1, 61):
        text = randomly.choice((b"get", b"put", b"scan", b"orders"))
        call = pack(">iiH", number, randomly.randrange(8), len(text)) + text + randomly.randbytes(20)
        said.append(("client", _int32_sized(call)))
        said.append(("server", _int32_sized(pack(">ii", number, 0) + randomly.randbytes(30))))
    return said


def thrift(seed: int = 0) -> list[Turn]:
    """Framed transport, the binary protocol, strict and not: a name and a sequence number in both
    directions."""
    randomly = random.Random(seed)
    said: list[Turn] = []
    for number in range(40):
        name = randomly.choice((b"get", b"getByName", b"listAllTheThings"))
        for who, kind in (("client", 1), ("server", 2)):
            body = randomly.randbytes(randomly.randrange(30)) + b"\0"
            head = pack(">Ii", 0x8001_0000 | kind, len(name)) + name + pack(">i", number)
            if seed % 2:
                head = pack(">i", len(name)) + name + pack(">Bi", kind, number)
            said.append((who, _int32_sized(head + body)))
    return said


def pulsar(seed: int = 0) -> list[Turn]:
    """The size of all, the size of the command, and the command in protobuf."""
    randomly = random.Random(seed)
    said: list[Turn] = []
    for number in range(40):
        topic = b"persistent://public/default/orders-%d" % randomly.randrange(9)
        command = bytes((8, randomly.randrange(1, 40), 0x12, len(topic))) + topic + bytes((0x18, number))
        said.append((("client", "server")[number % 2], _int32_sized(pack(">i", len(command)) + command)))
    return said


def rocketmq(seed: int = 0) -> list[Turn]:
    """The size of all, that of the header, and a header in JSON."""
    said: list[Turn] = []
    for number in range(20):
        header = b'{"code":%d,"flag":0,"language":"JAVA","opaque":%d,"version":395}' % (10 + seed, number)
        said.append(("client", _int32_sized(pack(">i", len(header)) + header + b"body")))
        said.append(("server", _int32_sized(pack(">i", len(header)) + header)))
    return said


def smb(seed: int = 0) -> list[Turn]:
    """NetBIOS sessions: a zero and 24 bits of length."""
    randomly = random.Random(seed)
    said: list[Turn] = []
    for number in range(20):
        head = b"\xfeSMB" + pack("<HHIHHIIQ", 64, 1, 0, randomly.randrange(19), 1, 0, 0, number) + bytes(32)
        said.append(("client", _int32_sized(head)))
        said.append(("server", _int32_sized(head + randomly.randbytes(40))))
    return said


def random_bytes(seed: int = 0, size: int = 20_000) -> list[Turn]:
    randomly = random.Random(seed)
    return [("client", randomly.randbytes(size)), ("server", randomly.randbytes(size))]


def zeros(size: int = 20_000) -> list[Turn]:
    return [("client", bytes(size)), ("server", bytes(size))]


CONVERSATIONS: dict[str, tuple[str, list[Turn]]] = {
    "HTTP/1.1": ("http", http_1()),
    "HTTP/2": ("http", http_2()),
    "TLS": ("tls", tls()),
    "Redis": ("unknown", redis()),
    "PostgreSQL": ("unknown", postgresql()),
    "PostgreSQL with SSLRequest": ("unknown", postgresql(ssl_request=True)),
    "MySQL": ("unknown", mysql()),
    "AMQP": ("unknown", amqp()),
    "MQTT": ("unknown", mqtt()),
    "SSH": ("unknown", ssh()),
    "DNS over TCP": ("unknown", dns_over_tcp()),
    "Cassandra": ("unknown", cassandra()),
    "ZooKeeper": ("unknown", zookeeper()),
    "protobuf": ("unknown", protobuf_frames()),
    "RPC with names": ("unknown", rpc_with_names()),
    "RPC with its number first": ("unknown", rpc_with_its_number_first()),
    "Thrift": ("unknown", thrift()),
    "Thrift, not strict": ("unknown", thrift(1)),
    "Pulsar": ("unknown", pulsar()),
    "RocketMQ": ("unknown", rocketmq()),
    "SMB": ("unknown", smb()),
    "small integers": ("unknown", small_integers()),
    "random bytes": ("unknown", random_bytes()),
    "zeros": ("unknown", zeros()),
}
"""Name: what the column ``protocol`` says of it, and the conversation."""
