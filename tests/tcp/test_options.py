from __future__ import annotations

from kdissect.tcp.options import Offered, first_block, offered

LINUX = bytes.fromhex("020405b4 0402 080a 01020304 00000000 01 030307".replace(" ", ""))


def test_a_syn_tells_what_its_sender_offers() -> None:
    assert offered(LINUX) == Offered(1460, 7, True, True)
    assert offered(b"\x02\x04\x05\xb4") == Offered(1460, None, False, False)
    assert offered(b"") == Offered()


def test_clocks_in_a_syn_change_nothing() -> None:
    for clocks in (b"\x02\x04\x00\x01\x03\x03\x03\x03", bytes(8), b"\xff" * 8):
        assert offered(LINUX[:8] + clocks + LINUX[16:]) == Offered(1460, 7, True, True)
        assert offered(LINUX[:8] + clocks + LINUX[16:-1] + b"\x09").scale == 9
    inside = bytes.fromhex("0906 0000 0402 080a 0204 0001 0303 0303 0303 05".replace(" ", ""))
    assert offered(inside) == Offered(None, 5, False, True)  # the first option is no MSS


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
