"""The names of fields in Wireshark's Kafka dissector, as aliases of the names here.

One table: :data:`NAMES`. A name stands for one field, or for several that Wireshark has under one name. A
name that states a fact stands for a filter. If kdissect has no equivalent, the table gives the reason. The
names are those of ``packet-kafka.c`` of Wireshark 4.0, and a few earlier and later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from kdissect.filter.field import RECORD, FieldKind, FilterField, plain
from kdissect.filter.fields import by_name
from kdissect.filter.paths import places
from kdissect.filter.reach import field_at
from kdissect.filter.row import Row

PROTOCOL = "kafka"
PREFIX = f"{PROTOCOL}."


class Means(NamedTuple):
    """A name that states a fact."""

    filter: str
    """The filter that tests the fact."""


class Refused(NamedTuple):
    """A name without an equivalent here."""

    why: str
    """The reason, and what to use instead."""


_LENGTHS = Refused(
    "lengths of strings, bytes and arrays are no fields: brackets or request_size and response_size"
)
_BATCH = "batches have no fields in a filter:"

NAMES: Mapping[str, str | Means | Refused] = {
    # -- every message
    "len": "request_size response_size",
    "api_key": "api_key",
    "api_version": "api_version",
    "request_key": "api_key",
    "response_key": "api_key",
    "request.version": "api_version",
    "response.version": "api_version",
    "version": "api_version",
    "correlation_id": "correlation_id",
    "client_id": "client_id",
    "request_frame": "request_packet",
    "response_frame": "response_packet",
    "error": "errorCode partitionErrorCode topicConfigErrorCode acknowledgeErrorCode",
    "error_message": "errorMessage",
    "throttle_time": "throttleTimeMs",
    "timeout": "timeoutMs",
    "validate_only": "validateOnly",
    "tagged_field_tag": Refused(
        "unknown tagged fields are no fields; -T ndjson has them as _unknownTaggedFields"
    ),
    "tagged_field_data": Refused(
        "unknown tagged fields are no fields; -T ndjson has them as _unknownTaggedFields"
    ),
    "string_len": _LENGTHS,
    "bytes_len": _LENGTHS,
    "array_count": _LENGTHS,
    # -- topics and partitions
    "topic_name": "topics",
    "topic_id": "topicId",
    "partition_id": "partition",
    "num_partitions": "numPartitions",
    "partition_count": "createPartitions.request.topics.count",
    "replication_factor": "replicationFactor",
    "replica_id": "replicaId replicaNodes replicas",
    "isr_id": "isrNodes isr newIsr",
    "offline_id": "offlineReplicas",
    "leader_id": "leaderId",
    "leader_epoch": "leaderEpoch",
    "current_leader_epoch": "currentLeaderEpoch",
    "is_internal": "isInternal",
    "is_new_replica": "isNew",
    "delete_partitions": "deletePartitions deletePartition",
    "allow_auto_topic_creation": "allowAutoTopicCreation",
    "election_type": "electionType",
    # -- brokers
    "node_id": "nodeId brokerId",
    "broker_epoch": "brokerEpoch",
    "host": "host",
    "port": "port",
    "rack": "rack rackId",
    "listener_name": "listener listeners.name",
    "broker_security_protocol_type": "securityProtocol",
    "cluster_id": "clusterId",
    "controller_epoch": "controllerEpoch",
    "zk_version": "zkVersion",
    # -- offsets, Produce, Fetch, ListOffsets
    "offset": (
        "fetchOffset highWatermark produce.response.responses.partitionResponses.baseOffset committedOffset "
        "listOffsets.response.topics.partitions.offset deleteRecords.request.topics.partitions.offset "
        "offsetForLeaderEpoch.response.topics.partitions.endOffset lowWatermark record.offset"
    ),
    "offset_time": "listOffsets.timestamp",
    "max_offsets": "listOffsets.request.topics.partitions.maxNumOffsets",
    "log_start_offset": "logStartOffset",
    "last_stable_offset": "lastStableOffset",
    "first_offset": "fetch.response.responses.partitions.abortedTransactions.firstOffset",
    "required_acks": "acks",
    "min_bytes": "minBytes",
    "max_bytes": "maxBytes partitionMaxBytes",
    "max_wait_time": "maxWaitMs",
    "isolation_level": "isolationLevel",
    "fetch_session_id": "fetch.sessionId",
    "fetch_session_epoch": "fetch.request.sessionEpoch",
    "forgotten_topic_name": "fetch.request.forgottenTopicsData.topic",
    "forgotten_topic_partition": "fetch.request.forgottenTopicsData.partitions",
    "batch_index": "batchIndex",
    "batch_index_error_message": "batchIndexErrorMessage",
    # -- records
    "message_key": "record.key",
    "message_value": "record.value",
    "message_magic": "record.magic",
    "message_codec": "#codec",
    "batch_codec": "#codec",
    "message_timestamp": "record.timestamp",
    "message_timestamp_type": "#timestamp-type",
    "batch_timestamp_type": "#timestamp-type",
    "batch_transactional": "record.transactional",
    "batch_control_batch": "#control",
    "header_key": "#header-key",
    "header_value": "#header-value",
    "message_crc": Refused("checksums are no fields; record.crc_valid tells whether they fit"),
    "batch_crc": Refused("checksums are no fields; record.crc_valid tells whether they fit"),
    "message_size": Refused("it is no field; record.key_size and record.value_size are"),
    "message_set_size": Refused("it is no field; produce.request.recordsSizeInBytes and the like are"),
    "batch_size": Refused(f"{_BATCH} recordsSizeInBytes has the size of all of a partition's"),
    "batch_last_offset_delta": Refused(
        f"{_BATCH} record.offset and record.batch_offset are those of records"
    ),
    "batch_first_timestamp": Refused(f"{_BATCH} record.timestamp has that of every record"),
    "batch_last_timestamp": Refused(f"{_BATCH} record.timestamp has that of every record"),
    "batch_base_sequence": Refused(f"{_BATCH} record.sequence has that of every record"),
    "message_compression_reduction": Refused(
        "it is no field; record.codec tells how a record was compressed"
    ),
    "record_attributes": Refused("no record of Kafka's has any: they are reserved"),
    "truncated_content": Means("fault.kind == partial-batch"),
    # -- groups and offsets of groups
    "consumer_group": "group",
    "consumer_group_instance": "groupInstanceId",
    "coordinator_key": (
        "findCoordinator.request.key findCoordinator.request.coordinatorKeys "
        "findCoordinator.response.coordinators.key"
    ),
    "coordinator_type": "findCoordinator.request.keyType",
    "coordinator_epoch": "coordinatorEpoch",
    "group_state": "groupState",
    "group_leader_id": "joinGroup.response.leader",
    "member_id": "memberId",
    "member_metadata": "joinGroup.response.members.metadata memberMetadata",
    "member_assignment": (
        "syncGroup.request.assignments.assignment syncGroup.response.assignment memberAssignment"
    ),
    "generation_id": "generationId generationIdOrMemberEpoch",
    "protocol_type": "protocolType",
    "protocol_name": "protocolName joinGroup.request.protocols.name protocolData",
    "protocol_metadata": "joinGroup.request.protocols.metadata",
    "session_timeout": "sessionTimeoutMs",
    "rebalance_timeout": "rebalanceTimeoutMs",
    "client_host": "clientHost",
    "metadata": (
        "committedMetadata offsetFetch.response.topics.partitions.metadata "
        "offsetFetch.response.groups.topics.partitions.metadata"
    ),
    "commit_timestamp": "commitTimestamp",
    "retention_time": "retentionTimeMs",
    "require_stable_offset": "requireStable",
    # -- transactions
    "transactional_id": "transactional_id",
    "transaction_result": "transactionResult endTxn.request.committed",
    "transaction_timeout": "transactionTimeoutMs",
    "producer_id": "producer_id record.producer_id",
    "producer_epoch": "producerEpoch record.producer_epoch",
    # -- configuration, quotas, log directories
    "config_key": "configs.name configurationKeys synonyms.name",
    "config_value": "configs.value synonyms.value",
    "config_operation": "configOperation",
    "config_resource_type": (
        "describeConfigs.resourceType alterConfigs.resourceType incrementalAlterConfigs.resourceType"
    ),
    "config_resource_name": (
        "describeConfigs.resourceName alterConfigs.resourceName incrementalAlterConfigs.resourceName"
    ),
    "config_include_synonyms": "includeSynonyms",
    "config_source": "configSource synonyms.source",
    "config_readonly": "readOnly",
    "config_default": "isDefault",
    "config_sensitive": "isSensitive",
    "log_dir": "logDir alterReplicaLogDirs.request.dirs.path",
    "segment_size": "partitionSize",
    "offset_lag": "offsetLag",
    "future": "isFutureKey",
    # -- security
    "sasl_mechanism": "saslHandshake.request.mechanism saslHandshake.response.mechanisms",
    "sasl_authentication": "saslAuthenticate.authBytes",
    "session_lifetime_ms": "sessionLifetimeMs",
    "acl_resource_type": (
        "describeAcls.resourceType createAcls.resourceType deleteAcls.resourceType resourceTypeFilter"
    ),
    "acl_resource_name": (
        "describeAcls.resourceName createAcls.resourceName deleteAcls.resourceName resourceNameFilter"
    ),
    "acl_resource_pattern_type": "patternType resourcePatternType patternTypeFilter",
    "acl_principal": "describeAcls.principal createAcls.principal deleteAcls.principal principalFilter",
    "acl_host": "describeAcls.host createAcls.host deleteAcls.host hostFilter",
    "acl_operation": "describeAcls.operation createAcls.operation deleteAcls.operation",
    "acl_permission_type": "permissionType",
    "principal_type": "principalType ownerPrincipalType tokenRequesterPrincipalType",
    "principal_name": "principalName ownerPrincipalName tokenRequesterPrincipalName",
    "token_id": "tokenId",
    "token_hmac": "hmac",
    "token_max_life_time": "maxLifetimeMs",
    "renew_time": "renewPeriodMs",
    "expiry_time": "expiryTimePeriodMs",
    "token_issue_timestamp": "issueTimestampMs issueTimestamp",
    "token_expiry_timestamp": "expiryTimestampMs expiryTimestamp",
    "token_max_timestamp": "maxTimestampMs maxTimestamp",
    "include_cluster_authorized_ops": "includeClusterAuthorizedOperations",
    "include_topic_authorized_ops": "includeTopicAuthorizedOperations",
    "include_group_authorized_ops": "describeGroups.request.includeAuthorizedOperations",
    "cluster_authorized_ops": "clusterAuthorizedOperations",
    "topic_authorized_ops": "topicAuthorizedOperations",
    "group_authorized_ops": "describeGroups.response.groups.authorizedOperations",
    # -- ApiVersions
    "api_versions.api_key": "apiVersions.response.apiKeys.apiKey",
    "api_versions.min_version": "apiVersions.response.apiKeys.minVersion",
    "api_versions.max_version": "apiVersions.response.apiKeys.maxVersion",
    "client_software_name": "clientSoftwareName",
    "client_software_version": "clientSoftwareVersion",
    # -- what Wireshark's experts say
    "request_missing": Means("no_request"),
    "unknown_api_key": Means("fault.kind == unknown-api"),
    "unsupported_api_version": Means("fault.kind == unknown-api"),
    "bad_string_length": Means("fault.kind in {negative-length, truncated}"),
    "bad_bytes_length": Means("fault.kind in {negative-length, truncated}"),
    "bad_array_length": Means("fault.kind in {negative-length, truncated, too-many-elements}"),
    "bad_record_length": Means("fault.kind == bad-record"),
    "bad_varint": Means("fault.kind == varint-too-long"),
    "ei_kafka_bad_message_set_length": Means("fault.kind in {partial-batch, bad-batch}"),
    "ei_kafka_bad_decompression_length": Means("fault.kind == decompression-limit"),
    "ei_kafka_zero_decompression_length": Means("fault.kind == bad-compressed-data"),
    "unknown_message_magic": Means("fault.kind == bad-magic"),
    "pdu_length_mismatch": Means("fault.kind in {remainder, truncated}"),
}
"""By the name without ``kafka.``: names of kdissect's fields with blanks between them, or a filter, or the
reason for refusing it. Names with ``#`` are defined below."""


@cache
def _by_plain_name() -> Mapping[str, str]:
    return {plain(PREFIX + name): name for name in NAMES}


def known(name: str) -> str | Means | Refused | None:
    """The meaning of a name of Wireshark's; None for other names."""
    if plain(name) == plain(PROTOCOL):
        return Means("number >= 1")  # every exchange
    found = _by_plain_name().get(plain(name))
    return None if found is None else NAMES[found]


@cache
def field_of(name: str) -> FilterField | None:
    """The field that a name of Wireshark's stands for; None for names that do not stand for one."""
    found = known(name)
    if not isinstance(found, str):
        return None
    fields = [_field(each) for each in found.split()]
    if len(fields) == 1:
        return fields[0]
    return FilterField(
        name,
        fields[0].kind,
        f"{' and '.join((', '.join(each.name for each in fields[:-1]), fields[-1].name))}",
        partial(_values, fields),
        many=True,
        cost=max(each.cost for each in fields),
        unit=fields[0].unit if len({each.unit for each in fields}) == 1 else "",
    )


def _field(name: str) -> FilterField:
    if name.startswith("#"):
        return _OF_RECORDS[name]
    return by_name().get(plain(name)) or field_at(name, places(name))


def _values(fields: list[FilterField], row: Row) -> list[Any]:
    return [value for field in fields for value in field.values(row)]


# -- numbers and parts of records that have no name of their own here ---------------------------------


def _numbers(column: str, codes: Mapping[str, int], row: Row) -> list[int]:
    return [codes[value] for record in row.records() if (value := record[column]) in codes]


def _controls(row: Row) -> list[bool]:
    return [record["control"] is not None for record in row.records()]


def _header_part(part: int, row: Row) -> list[Any]:
    parts = (header[part] for record in row.records() for header in record["headers"])
    return [each for each in parts if each is not None]


_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_TIMESTAMP_TYPES = {"CreateTime": 0, "LogAppendTime": 1}


def _of_records() -> Iterator[tuple[str, FieldKind, str, Callable[[Row], Any], Mapping[str, int]]]:
    codec = partial(_numbers, "codec", _CODECS)
    yield "#codec", FieldKind.NUMBER, "of a record: the number of the codec", codec, _CODECS
    timestamp_type = partial(_numbers, "timestamp_type", _TIMESTAMP_TYPES)
    meaning = "of a record: what its timestamp is, as a number"
    yield "#timestamp-type", FieldKind.NUMBER, meaning, timestamp_type, _TIMESTAMP_TYPES
    yield "#control", FieldKind.FLAG, "of a record: whether it is a control record", _controls, {}
    yield (
        "#header-key",
        FieldKind.BYTES,
        "of a record: the names of its headers",
        partial(_header_part, 0),
        {},
    )
    yield (
        "#header-value",
        FieldKind.BYTES,
        "of a record: the values of its headers",
        partial(_header_part, 1),
        {},
    )


_OF_RECORDS = {
    name: FilterField(PREFIX + name, kind, meaning, read, True, RECORD, codes=codes)
    for name, kind, meaning, read, codes in _of_records()
}


def names() -> Iterator[tuple[str, str]]:
    """Every name of Wireshark's that may be used, and its meaning here."""
    for name, found in NAMES.items():
        if isinstance(found, Means):
            yield PREFIX + name, found.filter
        elif isinstance(found, str):
            field = field_of(PREFIX + name)
            assert field is not None
            yield PREFIX + name, field.meaning if found.startswith("#") else ", ".join(found.split())
