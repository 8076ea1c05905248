"""The allow-list: which parts of a message a scrubbed capture keeps, and what replaces all others.

Numbers, times, sizes, flags and error codes stay. Words of Kafka and its clients stay too, where such words
are expected, because they do not identify the sender. A field's meaning decides how its text or bytes are
replaced. A text without another meaning is a :data:`NAME`. Unknown bytes are left out. The definitions say
which bytes contain embedded data, and which fields are secrets (:mod:`kdissect.protocol.traits`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from kdissect.analysis.triggers import FOLLOWS, GIVEN_ID, REASONS
from kdissect.protocol.config_names import NOT_SECRET

NAME = "name"
"""A name becomes a token of the same length, unless it is Kafka's own (:data:`KEPT_NAMES`)."""
WORD = "word"
"""A word of Kafka or its clients stays (:data:`KEPT_WORDS`); any other word is treated as a name."""
HOST = "host"
"""An address becomes another address; each part of a host name becomes a token."""
TEXT = "text"
"""A text for people stays if Kafka always uses the same text. Otherwise it becomes filler."""
VALUE = "value"
"""The value of a setting. If the setting is no secret, numbers, yes and no, and words of Kafka stay. Other
values are treated as names."""
VERSION = "version"
"""The version of a program stays if it looks like a version. Otherwise it is treated as a name."""
PRINCIPAL = "principal"
"""The kind of a user, followed by a colon and a name."""
NUMBER_OR_NAME = "number or name"
"""A number, such as a broker's or a subtopology's, stays. Other texts are treated as names."""

MEANINGS = {
    **dict.fromkeys(("host", "hostName", "clientHost", "hostFilter", "v0Host", "userEndPoint"), HOST),
    **dict.fromkeys(("errorMessage", "reason", "statusDetail", "documentation"), TEXT),
    **dict.fromkeys(("batchIndexErrorMessage", "acknowledgeErrorMessage"), TEXT),
    **dict.fromkeys(("protocolType", "protocol", "protocolName", "protocolData"), WORD),
    **dict.fromkeys(
        ("assignorName", "serverAssignor", "mechanism", "mechanisms", "listener", "feature"), WORD
    ),
    **dict.fromkeys(("groupState", "groupType", "typesFilter", "statesFilter", "stateFilters"), WORD),
    **dict.fromkeys(("unknownStateFilters", "transactionState", "clientSoftwareName", "entityType"), WORD),
    **dict.fromkeys(("principalType", "tokenRequesterPrincipalType", "ownerPrincipalType", "type"), WORD),
    **dict.fromkeys(("requestedMetrics", "configurationKeys", "featureUpdates"), WORD),
    "value": VALUE,
    "clientSoftwareVersion": VERSION,
    **dict.fromkeys(("principal", "principalFilter", "owner", "requester"), PRINCIPAL),
    **dict.fromkeys(("successors", "renewers"), NAME),
    "subtopologyId": NUMBER_OR_NAME,
}
"""Meanings by the name of the field, which is the same in all classes. A field that is missing here is a
:data:`NAME`."""

RESOURCE_NAME = "resourceName"
"""A :data:`NUMBER_OR_NAME` if the resource is a broker."""

NAMES_OF_WORDS = frozenset(
    (
        *("value", "values", "configSource", "configOperation", "metadata", "securityProtocol", "remove"),
        *("minVersion", "maxVersion", "minSupportedVersion", "minVersionLevel", "featureLevel", "configType"),
    )
)
"""Fields that make ``name`` and ``key`` beside them a :data:`WORD`: the name of a setting, of a protocol, of
a feature or of a listener."""

FILLER = "x"
"""The filler of texts."""
UNKNOWN = b"\xff"
"""The filler for bytes of a connection that are in no message. It is no valid size and no valid API."""
MARK = b"scrubbed by kdissect: "
"""The beginning of the filler of compressed records, as far as it fits."""

_WORDS = """
    default none null true false all any unknown
    consumer connect share streams classic generic simple
    range roundrobin sticky cooperative-sticky stream RoundRobinAssigner uniform compatible eager sessioned
    homogeneous
    PLAIN SCRAM-SHA-256 SCRAM-SHA-512 OAUTHBEARER GSSAPI AWS_MSK_IAM
    PLAINTEXT SSL SASL_PLAINTEXT SASL_SSL CONTROLLER BROKER INTERNAL EXTERNAL CLIENT REPLICATION
    Unknown Empty Dead Stable PreparingRebalance CompletingRebalance Assigning Reconciling NotReady
    Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort PrepareEpochFence
    Classic Consumer Share Streams
    User Group user group client-id ip
    apache-kafka-java confluent-kafka-python confluent-kafka-go confluent-kafka-dotnet confluent-kafka-js
    kafka-python aiokafka librdkafka rdkafka sarama kgo kadm franz-go kafka-go kafkajs node-rdkafka
    KafkaJS Sarama redpanda-client pykafka rdkafka-ruby spring-kafka brod kafka_ex phpkafka
    metadata.version kraft.version group.version share.version streams.version transaction.version
    eligible.leader.replicas.version
    request_percentage consumer_byte_rate producer_byte_rate controller_mutation_rate
    connection_creation_rate
    delete compact CreateTime LogAppendTime producer gzip snappy lz4 zstd uncompressed
    earliest latest by_duration read_committed read_uncommitted required requested
    org.apache.kafka. org.apache.kafka.consumer. org.apache.kafka.producer.
"""

LEVELS = frozenset(("INFO", "WARN", "ERROR", "DEBUG", "TRACE", "FATAL", "OFF"))
"""Values of the settings of a broker's loggers. These settings are named after classes."""

KEPT_WORDS = frozenset(_WORDS.split()).union(*NOT_SECRET.values())
"""Words that stay where a word of Kafka is expected, with the settings that Kafka knows."""

KEPT_NAMES = frozenset(
    (
        *("", "*", "localhost", "kafka-cluster", "ANONYMOUS", "__consumer_offsets", "__transaction_state"),
        *("__share_group_state", "__cluster_metadata", "__remote_log_metadata"),
    )
)
"""Names that stay everywhere, because Kafka itself gives them."""

KEPT_ENDS = ("-changelog", "-repartition", "-restore-consumer", "-global-consumer", "-consumer", "-producer")
"""Endings of names that Kafka Streams makes. They stay."""

_SENTENCES = """
    NONE
    consumer poll timeout has expired.
    rebalance enforced by user
    need to revoke partitions and re-join
    rebalance failed due to
    at the beginning of the rebalance to
    the subscription has changed from
    cached metadata has changed from
    rebalance timed out
    broker is not available
    UnjoinedGroupException
    CoordinatorLoadInProgressException CoordinatorNotAvailableException NotCoordinatorException
    DisconnectException RebalanceInProgressException UnknownMemberIdException IllegalGenerationException
    group is already rebalancing
    the consumer is being closed
    the consumer unsubscribed from all topics
    beginning to manage the group lifecycle
    member was removed by an admin
    client leaving group per normal operation
    Assignment delayed due to the configured initial rebalance delay.
    Assignment delayed due to the configured assignment interval.
    Internal topics are missing
"""
PHRASES = (
    *(line.strip() for line in _SENTENCES.strip().splitlines()),
    *(text for text, _ in REASONS),
    *FOLLOWS,
    GIVEN_ID,
)
"""Phrases that stay in texts of Kafka and its clients, including those that analyses search for. The rest of
such a text may contain names, and becomes filler."""

_RELEASE_WORDS = frozenset(
    ("v", "rdkafka", "rc", "alpha", "beta", "dev", "SNAPSHOT", "ccs", "ce", "final", "release", "go")
)
_PART = re.compile(r"[0-9]{1,6}|[A-Za-z]+")
_ADDRESS = re.compile(r"\d{2,}(\.\d+){3}")
_PARTS = re.compile(r"[0-9A-Za-z.+-]{1,40}")
_PHRASES = re.compile("|".join(map(re.escape, sorted(PHRASES, key=len, reverse=True))))
_ALL_WORDS = sorted({*KEPT_WORDS, *KEPT_NAMES, *PHRASES}, key=len, reverse=True)
_LONG, _LITTLE = 8, 2
"""Lengths: of a word that is in no name by chance, and of the rest that may be beside a word."""
_LONG_WORDS = re.compile("|".join(re.escape(each) for each in _ALL_WORDS if len(each) >= _LONG))
_SHORT_WORDS = re.compile("|".join(re.escape(each) for each in _ALL_WORDS if _LITTLE < len(each) < _LONG))
_WORDS_TOGETHER = "\n".join(_ALL_WORDS)
_NUMBERS = re.compile(r"[0-9][0-9.:]{3,}")
_NUMBER = re.compile(r"-?\d{1,19}(\.\d{1,19})?")
_PLAIN_NUMBER = re.compile(r"\d{1,10}")


@lru_cache(maxsize=65_536)
def kept_end(name: str) -> str:
    """The ending of a name that stays, or an empty text."""
    return next((end for end in KEPT_ENDS if name.endswith(end) and len(name) > len(end)), "")


def is_version(text: str) -> bool:
    """Whether a text is the version of a program, and nothing else. Four numbers may also be an address, so
    such a version must begin with a digit to stay."""
    if not _PARTS.fullmatch(text) or _ADDRESS.fullmatch(text):
        return False
    return all(part.isdigit() or part in _RELEASE_WORDS for part in _PART.findall(text))


def is_plain_field(name: str) -> bool:
    """Whether numbers and versions stay in a field."""
    return MEANINGS.get(name) in (VALUE, VERSION, NUMBER_OR_NAME) or name == RESOURCE_NAME


def is_number(text: str) -> bool:
    """Whether a text is a small number without a sign: of a broker, of a part of a topology."""
    return _PLAIN_NUMBER.fullmatch(text) is not None


def is_plain_value(text: str) -> bool:
    """Whether the value of a setting is a number, or consists of words that stay."""
    return _NUMBER.fullmatch(text) is not None or all(part in KEPT_WORDS for part in text.split(","))


def kept_phrases(text: str) -> list[tuple[int, int]]:
    """The places of the phrases in a text that stay."""
    return [found.span() for found in _PHRASES.finditer(text)]


def without_kept_words(text: str) -> list[str]:
    """The rest of a text without numbers and words that stay. Short words may be parts of names, so they are
    removed only if little else is left. The same holds for parts of words."""
    found = (each for piece in _LONG_WORDS.split(text) for each in _NUMBERS.split(piece))
    return [each for each in found if each and not _is_short_word(each) and each[1:-1] not in _WORDS_TOGETHER]


def _is_short_word(text: str) -> bool:
    """Whether a text is a short word that stays, with little beside it."""
    return _SHORT_WORDS.search(text) is not None and len(_SHORT_WORDS.sub("", text)) <= _LITTLE


def is_known_setting(name: object) -> bool:
    """Whether a text is the name of a setting whose value is no secret."""
    return isinstance(name, str) and any(name in known for known in NOT_SECRET.values())
