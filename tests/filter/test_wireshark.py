"""Every name of a field of Wireshark's Kafka dissector is a filter here, or is refused with one line."""

from __future__ import annotations

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.filter.compiled import compile_filter
from kdissect.filter.complete import complete
from kdissect.filter.errors import FilterError
from kdissect.filter.wireshark import NAMES, PREFIX, Means, Refused, field_of, known
from kdissect.present.options import PLAIN
from kdissect.present.records import record_rows
from tests.amount import each_of
from tests.cli.run import CAPTURES

ALL = """
len offset offset_time log_start_offset last_stable_offset first_offset max_offsets metadata error
error_message api_key api_version request_key response_key request.version response.version
correlation_id client_id client_host transactional_id transaction_result transaction_timeout
required_acks timeout topic_name producer_id producer_epoch partition_id replica_id replication_factor
isr_id offline_id message_size message_crc message_magic message_codec message_timestamp_type batch_crc
batch_codec batch_timestamp_type batch_transactional batch_control_batch batch_last_offset_delta
batch_first_timestamp batch_last_timestamp batch_base_sequence batch_size batch_index
batch_index_error_message message_timestamp message_key message_value message_compression_reduction
truncated_content consumer_group consumer_group_instance coordinator_key coordinator_type request_frame
node_id broker_epoch host listener_name port rack broker_security_protocol_type cluster_id
controller_epoch delete_partitions group_leader_id leader_id leader_epoch current_leader_epoch
is_internal min_bytes max_bytes isolation_level max_wait_time throttle_time response_frame
api_versions.api_key api_versions.min_version api_versions.max_version session_timeout
rebalance_timeout group_state member_id protocol_type protocol_name protocol_metadata member_metadata
generation_id member_assignment sasl_mechanism num_partitions zk_version is_new_replica config_key
config_value config_operation commit_timestamp retention_time forgotten_topic_name
forgotten_topic_partition fetch_session_id fetch_session_epoch require_stable_offset header_key
header_value record_attributes allow_auto_topic_creation validate_only coordinator_epoch
sasl_authentication session_lifetime_ms acl_resource_type acl_resource_name acl_resource_pattern_type
acl_principal acl_host acl_operation acl_permission_type config_resource_type config_resource_name
config_include_synonyms config_default config_readonly config_sensitive config_source log_dir
segment_size offset_lag future partition_count token_max_life_time renew_time expiry_time
principal_type principal_name token_issue_timestamp token_expiry_timestamp token_max_timestamp token_id
token_hmac include_cluster_authorized_ops include_topic_authorized_ops cluster_authorized_ops
topic_authorized_ops include_group_authorized_ops group_authorized_ops election_type tagged_field_tag
tagged_field_data client_software_name client_software_version request_missing unknown_api_key
unsupported_api_version bad_string_length bad_bytes_length bad_array_length bad_record_length
bad_varint ei_kafka_bad_message_set_length ei_kafka_bad_decompression_length
ei_kafka_zero_decompression_length unknown_message_magic pdu_length_mismatch
"""
"""What ``tshark -G fields`` of Wireshark 4.0 prints for ``kafka``."""
LATER = ("topic_id",)
EARLIER = ("version", "string_len", "bytes_len", "array_count", "message_set_size")


def test_the_table_holds_every_name_and_no_other() -> None:
    assert len(ALL.split()) == 168
    assert set(NAMES) == {*ALL.split(), *LATER, *EARLIER}


@each_of(lambda: NAMES)
def test_every_name_is_a_filter_or_says_why_not(name: str) -> None:
    meaning, text = NAMES[name], PREFIX + name
    if isinstance(meaning, Refused):
        for asked in (text, f"{text} == 1"):
            with pytest.raises(FilterError) as error:
                compile_filter(asked)
            assert error.value.reason == f"{text} is Wireshark's: {meaning.why}"
            assert "\n" not in error.value.reason
        return
    assert compile_filter(text).text == text
    assert not compile_filter(text).hints
    if isinstance(meaning, Means):
        compile_filter(meaning.filter)
        with pytest.raises(FilterError, match="is true or false by itself"):
            compile_filter(f"{text} == 1")
        return
    field = field_of(text)
    assert field is not None
    for part in meaning.split():  # one kind, or the filter could not be answered
        if not part.startswith("#"):
            compile_filter(part)
    assert known(text.upper().replace("_", "")) == meaning


def found(text: str, capture: str = "errors.pcapng") -> list[int]:
    chosen = compile_filter(text)
    return [each.number for each in exchanges(capture) if chosen.matches(each)]


def exchanges(capture: str) -> list[Exchange]:
    return list(read(CAPTURES / capture))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("kafka.error == 3", "errors == UNKNOWN_TOPIC_OR_PARTITION"),
        ("kafka.error == UNKNOWN_TOPIC_OR_PARTITION", "errors == UNKNOWN_TOPIC_OR_PARTITION"),
        ("kafka.client_id == errors", "client_id == errors"),
        ("kafka.topic_name contains java43", "topics contains java43"),
        ("kafka.api_key == 19", "api == CreateTopics"),
        ("kafka.api_key in {0, 1}", "api in {Produce, Fetch}"),
        ("kafka.request.version == 13", "api_version == 13"),
        ("kafka.correlation_id < 3", "correlation_id < 3"),
        ("kafka.required_acks == -1", "acks == all"),
        ("kafka.consumer_group", "group"),
        ("kafka.len > 900", "request_size > 900 or response_size > 900"),
        ("kafka.request_frame > 100", "request_packet > 100"),
        ("kafka.message_key contains k", "record.key contains k"),
        ("kafka.request_missing", "no_request"),
        ("kafka.partition_id == 0", "partition == 0"),
    ],
)
def test_a_name_of_theirs_asks_what_ours_does(theirs: str, ours: str) -> None:
    assert found(theirs) == found(ours)
    if theirs != "kafka.request_missing":
        assert found(theirs)


def test_numbers_of_codecs_and_timestamp_types_and_names_of_headers() -> None:
    capture = "basic-kafka43.pcapng"
    for number, name in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        wanted = found(f"record.codec == {name}", capture)
        assert wanted
        assert found(f"kafka.batch_codec == {number}", capture) == wanted
        assert found(f"kafka.message_codec == {name}", capture) == wanted
    created = found("record.timestamp_type == CreateTime", capture)
    assert found("kafka.batch_timestamp_type == 0", capture) == created
    headers = {
        part
        for each in exchanges(capture)
        for record in record_rows(each, PLAIN)
        for part in ([header[0] for header in record["headers"]])
    }
    assert headers
    for name in headers:
        assert found(f'kafka.header_key == "{name}"', capture)
        assert not found(f'kafka.header_value == "{name}"', capture)


def test_control_records_are_told() -> None:
    capture = "transactions-kafka39.pcapng"
    wanted = [
        each.number
        for each in exchanges(capture)
        if any(record["control"] is not None for record in record_rows(each, PLAIN))
    ]
    assert wanted
    assert found("kafka.batch_control_batch == true", capture) == wanted


def test_a_secret_stays_one_under_a_name_of_theirs() -> None:
    assert not found('kafka.sasl_authentication contains "n,,n="', "sasl-scram.pcapng")


def test_they_are_offered_and_a_wrong_one_leads_to_the_nearest() -> None:
    assert "kafka.client_id" in [each.text for each in complete("kafka.client")]
    assert "kafka.message_crc" not in [each.text for each in complete("kafka.mess")]
    with pytest.raises(FilterError, match=r"did you mean kafka\.client_id"):
        compile_filter('kafka.client_di == "x"')


def test_the_name_of_the_protocol_asks_for_all_and_a_wrong_field_of_it_is_told() -> None:
    assert found("kafka") == [each.number for each in exchanges("errors.pcapng")]
    with pytest.raises(FilterError, match=r"there is no field kafka\.foo"):
        compile_filter("kafka.foo")
