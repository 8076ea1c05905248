from __future__ import annotations

import copy
import pickle

import pytest

from kdissect.protocol import apis, plan
from kdissect.protocol.schema import (
    ZERO_UUID,
    Struct,
    data_struct,
    era_data_structs,
    era_structs,
    is_default,
    message_struct,
)
from tests.protocol.structs import EVERYTHING, struct_of


def test_a_struct_has_the_fields_of_its_version_only() -> None:
    old, new = message_struct(1, 12, "request"), message_struct(1, 13, "request")
    assert [field.name for field in old.fields][:3] == ["clusterId", "replicaId", "maxWaitMs"]
    topic = old.by_name["topics"].struct
    assert topic is not None
    assert [field.name for field in topic.fields] == ["topic", "partitions"]
    newer = new.by_name["topics"].struct
    assert newer is not None
    assert [field.name for field in newer.fields] == ["topicId", "partitions"]
    assert newer.absent == {"topic": ("", True)}
    assert message_struct(1, 12, "request") is old


def test_fields_say_what_kafkas_definitions_say() -> None:
    struct = message_struct(1, 17, "request")
    cluster = struct.by_name["clusterId"]
    assert (cluster.type, cluster.nullable, cluster.tag, cluster.default) == ("string", True, 0, None)
    assert struct.by_name["maxBytes"].default == 2147483647
    assert struct.by_name["topics"].default == []
    state = struct.by_name["replicaState"]
    assert state.default == {"replicaId": -1, "replicaEpoch": -1}
    assert state.struct is not None
    assert state.struct.by_name["replicaId"].entity == "brokerId"
    assert (struct.name, struct.version, struct.flexible, struct.release) == (
        "FetchRequest",
        17,
        True,
        "4.4.0",
    )
    assert message_struct(1, 0, "request").release == "3.9"


def test_names_lower_only_their_first_letter() -> None:
    assert "kRaftVersion" in data_struct("KRaftVersionRecord", 0).by_name


def test_a_client_id_is_never_compact() -> None:
    steps = data_struct("RequestHeader", 2).plan[1]
    assert steps[-1] == (plan.STRING, "clientId", True)


def test_what_the_definitions_do_not_have_is_a_lookup_error() -> None:
    for api_key, version, kind in ((4711, 0, "request"), (1, 99, "request"), (1, 0, "data")):
        with pytest.raises(LookupError):
            message_struct(api_key, version, kind)
    for name, version in (("NoSuchRecord", 0), ("TopicRecord", 9)):
        with pytest.raises(LookupError):
            data_struct(name, version)


def test_an_older_layout_of_the_same_version_is_an_era() -> None:
    (old,) = era_structs(87, 0, "response")
    partition = old.fields[0].struct.by_name["partitions"].struct  # type: ignore[union-attr]
    assert partition is not None
    assert "leaderEpoch" not in partition.by_name
    assert old.release == "3.9"
    assert era_structs(87, 0, "request") == ()
    assert [struct.release for struct in era_structs(68, 0, "request")] == ["3.6.2"]
    assert [struct.release for struct in era_structs(69, 0, "response")] == ["3.7.2"]
    assert [struct.release for struct in era_structs(54, 0, "request")] == ["2.7.2"]
    assert [struct.release for struct in era_data_structs("LeaderChangeMessage", 0)] == ["2.8.2", "2.7.2"]


def test_defaults_by_type() -> None:
    struct = struct_of(EVERYTHING, 5)
    defaults = {field.name: field.default for field in struct.fields}
    assert (defaults["int8"], defaults["bool"], defaults["float64"]) == (0, False, 0.0)
    assert (defaults["string"], defaults["bytes"], defaults["uuid"]) == ("", b"", ZERO_UUID)
    assert (defaults["things"], defaults["one"], defaults["tagged"]) == ([], None, -1)
    assert (defaults["records"], defaults["plain"]) == (None, {"id": 0})


def test_a_type_that_is_not_spelled_out_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Sample\.name: no type Absent"):
        struct_of("data 1 of 9.9\n    name  Absent  0+\n")


def test_nesting_has_a_limit() -> None:
    lines = ["data 1 of 9.9", *("    " * depth + f"a  T{depth}  0+" for depth in range(1, 40))]
    with pytest.raises(ValueError, match="nested deeper"):
        struct_of("\n".join([*lines, "    " * 40 + "a  int8  0+\n"]))


def test_the_default_of_a_tagged_field_counts_by_value() -> None:
    struct = struct_of(EVERYTHING, 5)
    plain, array, rare = (struct.by_name[name] for name in ("plain", "list", "rare"))
    assert is_default(plain, {"id": 0})
    assert not is_default(plain, {"id": 1})
    assert not is_default(plain, {"id": 0, "_unknownTaggedFields": [{"tag": 9, "data": b""}]})
    assert not is_default(plain, {})
    assert not is_default(plain, None)
    assert is_default(array, None)
    assert not is_default(array, [])
    assert is_default(rare, None)
    assert not is_default(rare, {"id": 0})


def every_struct() -> list[Struct]:
    tops = [
        found
        for key in apis.api_keys()
        for version in apis.versions(key)
        for kind in ("request", "response")
        for found in (message_struct(key, version, kind), *era_structs(key, version, kind))
    ]
    for name in apis.data_names():
        for version in apis.data_versions(name):
            tops += (data_struct(name, version), *era_data_structs(name, version))
    return [each for top in tops for each in with_inner(top)]


def with_inner(struct: Struct) -> list[Struct]:
    inner = [each for field in struct.fields if field.struct is not None for each in with_inner(field.struct)]
    return [struct, *inner]


def test_a_pickled_or_copied_struct_is_the_same_object() -> None:
    structs = every_struct()
    assert all(map(lambda a, b: a is b, pickle.loads(pickle.dumps(structs)), structs))
    one = data_struct("RequestHeader", 2)
    assert pickle.loads(pickle.dumps(one)) is copy.deepcopy(one) is one


def test_a_struct_that_was_only_built_is_pickled_by_value() -> None:
    struct = struct_of(EVERYTHING, 5)
    again = pickle.loads(pickle.dumps(struct))
    assert (again.fields[0], again.plan) == (struct.fields[0], struct.plan)
