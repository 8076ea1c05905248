"""The key schedules give what the RFCs' own examples have."""

from __future__ import annotations

from kdissect.tls.keys import expand_label, next_traffic_secret, prf, traffic_keys


def test_traffic_keys_are_those_of_rfc_8448() -> None:
    """Section 3, "derive write traffic keys for handshake data" of the server."""
    secret = bytes.fromhex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
    key, iv = traffic_keys(secret, 16, "sha256")
    assert key.hex() == "3fce516009c21727d0f2e4e86ee403bc"
    assert iv.hex() == "5d313eb2671276ee13000b30"


def test_application_traffic_keys_are_those_of_rfc_8448() -> None:
    secret = bytes.fromhex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643")
    key, iv = traffic_keys(secret, 16, "sha256")
    assert (key.hex(), iv.hex()) == ("9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984")


def test_the_prf_is_that_of_tls_1_2() -> None:
    """The vector for P_SHA256 that the TLS working group's list has (2009, "Test vectors for TLS 1.2")."""
    secret = bytes.fromhex("9bbe436ba940f017b17652849a71db35")
    seed = bytes.fromhex("a0ba9f936cda311827a6f796ffd5198c")
    expected = (
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a"
        "6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab"
        "4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66"
    )
    assert prf(secret, b"test label", seed, 100, "sha256").hex() == expected


def test_lengths_over_one_block() -> None:
    assert len(expand_label(bytes(32), "key", 100, "sha256")) == 100
    assert len(next_traffic_secret(bytes(48), "sha384")) == 48
