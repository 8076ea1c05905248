"""What a task is given, without Spark: secrets that all tasks read for themselves."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kdissect import read
from kdissect.capture.writer import PcapngWriter
from kdissect.exchange import Exchange
from kdissect.model import CaptureError
from kdissect.spark.progress import Note
from kdissect.spark.replay import new_pass, share_of
from kdissect.spark.settings import TableSettings
from tests.kafka import METADATA_RESPONSE_1, framed, request, response
from tests.tls.endpoints import BROKER, CLIENT, Ends, certificate
from tests.tls.tshark import packets_of


def test_the_key_of_a_broker_opens_what_it_can(tmp_path: Path) -> None:
    ask = framed(request("Metadata", 1, 1, topics=None))
    answer = framed(response("Metadata", 1, 1, **METADATA_RESPONSE_1))
    ends = Ends(ssl.TLSVersion.TLSv1_2, "AES128-GCM-SHA256:@SECLEVEL=0")
    capture = tmp_path / "rsa.pcapng"
    with capture.open("wb") as file:
        writer = PcapngWriter(file)
        for packet in packets_of([ends.talk([(CLIENT, ask), (BROKER, answer)]).flights]):
            writer.write(packet)
    for keys, count in (((), 0), ((str(ends.certificate.path),), 1)):
        events = list(share_of([str(capture)], TableSettings(rsa_key=keys), 0, 1, Note(None, "")))
        assert sum(isinstance(event, Exchange) for event in events) == count
        assert len(list(read(capture, rsa_keys=keys))) == count


def test_what_is_no_key_ends_the_task_with_one_line(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be read: No such file or directory"):
        new_pass(TableSettings(rsa_key=(str(tmp_path / "absent"),)))
    with pytest.raises(CaptureError, match="cannot be used as an RSA private key: it is not an RSA key"):
        new_pass(TableSettings(rsa_key=(str(certificate("ec").path),)))
