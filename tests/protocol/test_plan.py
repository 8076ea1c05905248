from __future__ import annotations

from kdissect.protocol import plan


def test_the_least_bytes_of_a_value() -> None:
    assert plan.least_bytes(plan.UUID, None) == 16
    assert plan.least_bytes(plan.STRING, False) == 2
    assert plan.least_bytes(plan.BYTES, False) == 4
    assert plan.least_bytes(plan.COMPACT_ARRAY, None) == 1
    assert plan.least_bytes(plan.NULLABLE_STRUCT, None) == 1
    rigid = ("Rigid", ((plan.INT32, "a", None), (plan.STRING, "b", False)), None)
    flexible = ("Flexible", ((plan.INT32, "a", None), (plan.STRUCT, "b", rigid)), ())
    assert plan.least_bytes(plan.STRUCT, rigid) == 6
    assert plan.least_bytes(plan.STRUCT, flexible) == 11


def test_every_leaf_opcode_has_a_name_and_every_fixed_one_a_width() -> None:
    assert len(plan.WIDTHS) == plan.STRING
    assert len(plan.TYPE_NAMES) == plan.ARRAY
