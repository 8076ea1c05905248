from __future__ import annotations

from kdissect.tcp.options import Offered, first_block, offered

LINUX = bytes.fromhex("020405b4 0402 080a 01020304 00000000 01 030307".replace(" ", ""))


def test_a_syn_tells_what_its_sender_offers() -> None:
    assert offered(LINUX) == Offered(1460, 7, True, True)
    assert offered(b"\x02\x04\x05\xb4") == Offered(1460, None, False, False)
    assert offered(b"") == Offered()


def test_a_scale_that_is_too_large_counts_as_the_largest() -> None:
    assert offered(b"\x03\x03\xff").scale == 14


def test_broken_options_tell_what_stands_before_the_break() -> None:
    for end in range(len(LINUX)):
        offered(LINUX[:end])
    assert offered(b"\x02\x04\x05\xb4\x03\x00\x07") == Offered(1460)
    assert offered(b"\x01\x01\x00\x03\x03\x07") == Offered()
    assert offered(b"\x02\x03\x05\x03\x03\x07") == Offered(None, 7)


def test_the_first_block_of_a_sack() -> None:
    block = b"\x05\x0a\x00\x00\x00\x05\x00\x00\x00\x09"
    assert first_block(b"\x01\x01" + block) == (5, 9)
    assert first_block(b"\x05\x12" + block[2:] + bytes(8)) == (5, 9)
    assert first_block(block[:-1]) is None
    assert first_block(LINUX) is None
