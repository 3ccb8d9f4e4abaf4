"""Launch files that were captured from programs on an emulated chip. Tests their fields, their buffers, reads of memory by
address, and changed fields."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import reconverge

#: The kernel's arguments: the addresses of its two buffers, and a number. (docs/samples/opencl-gcd.toml)
A, OUT, B = 0x980000, 0x980100, 24


@pytest.fixture
def captured(samples: Path) -> reconverge.Launch:
    return reconverge.launch(samples / "opencl-gcd.toml")


def test_a_captured_launch_meets_what_it_states_on_every_engine(captured: reconverge.Launch) -> None:
    for engine in ("reference", "fast", "compiled", "lockstep"):
        left = captured.run(engine=engine)
        assert left.mismatches == []
        assert np.array_equal(left["out"], np.gcd(left["a"], B))


def test_fields_are_those_of_the_file_and_a_copy(captured: reconverge.Launch, samples: Path) -> None:
    fields = captured.fields
    assert fields is not None
    assert (fields["driver_fixes"], fields["oversized"], fields["shared_bytes"]) == ("nv50-compute", True, 64)
    assert [each["number"] for each in fields["segment"]] == [0, 15]
    assert fields["segment"][1]["limit"] == 0xFFFF_FFFF
    value = fields["param"][0]["value"]
    assert isinstance(value, dict) and value["list"] == [[1, A, OUT, B]]
    assert fields["buffer"][0]["values"] == "1..17:u32"
    fields["segment"].clear()
    again = captured.fields
    assert again is not None and len(again["segment"]) == 2
    assert captured.program.launch(block=16, shared_bytes=64).fields is None


def test_numbers_of_json_keep_their_types(tmp_path: Path, samples: Path) -> None:
    (tmp_path / "a.s").write_text((samples / "opencl-gcd.s").read_text())
    stated = {
        "isa": "tesla",
        "program": "a.s",
        "oversized": False,
        "constant": [{"bank": 1, "offset": 16, "values": [0.5, 2]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(stated))
    fields = reconverge.launch(tmp_path / "a.json").fields
    assert fields is not None and fields == stated
    values = fields["constant"][0]["values"]
    assert isinstance(values, list) and isinstance(values[0], float)


def test_keywords_replace_fields_of_the_file(captured: reconverge.Launch, samples: Path) -> None:
    file = samples / "opencl-gcd.toml"
    fields = captured.fields
    assert fields is not None
    fields["buffer"][0]["values"] = np.arange(101, 117, dtype=np.uint32)
    left = reconverge.launch(file, buffer=fields["buffer"], expect=[]).run()
    assert left["out"].tolist() == np.gcd(np.arange(101, 117), B).tolist()
    # The launch file still states the results for the numbers in the launch file, not for the changed numbers.
    assert len(reconverge.launch(file, buffer=fields["buffer"]).run().mismatches) == 1
    with pytest.raises(reconverge.Error, match="unknown keyword `nonsense`"):
        reconverge.launch(file, nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(reconverge.Error, match="fields of the launch"):
        reconverge.launch(file, grid=object())  # type: ignore[arg-type]


def test_without_the_fixes_the_kernel_reads_other_words(samples: Path) -> None:
    fields = reconverge.launch(samples / "opencl-gcd.toml").fields
    assert fields is not None
    del fields["driver_fixes"], fields["expect"]
    program = reconverge.load(samples / "opencl-gcd.s")
    # The kernel reads its pointers at s[0x0] and s[0x4], where the hardware has the number of the grid and its sizes.
    with pytest.raises(reconverge.Trap):
        program.run(**fields)
    fields["driver_fixes"] = "nv50-compute"
    left = program.run(**fields)
    assert left["out"].tolist() == np.gcd(np.arange(1, 17), B).tolist()
    with pytest.raises(reconverge.Error, match="driver_fixes.*expected nv50-compute"):
        fields["driver_fixes"] = "nv50"
        program.run(**fields)
    fields["driver_fixes"] = "nv50-compute"
    fields["segment"][0]["number"] = 16
    with pytest.raises(reconverge.Error, match="segment 16.*0 to 15"):
        program.run(**fields)


def test_memory_is_read_by_address(captured: reconverge.Launch) -> None:
    assert captured.buffers == {"a": (A, A + 64), "out": (OUT, OUT + 64)}
    left = captured.run()
    assert left.at(OUT, 16).tolist() == left["out"].tolist()
    assert left.at(OUT + 4, 2, np.int32).tolist() == [2, 3]
    assert left.at(np.uint32(OUT + 44)).tolist() == [12]
    assert left.at(OUT + 1, 4, np.uint8).tolist() == [0, 0, 0, 2]
    assert left.at(A + 64, 0).tolist() == []
    assert np.shares_memory(left.at(OUT, 16), left["out"]) and not left.at(OUT).flags.writeable


@pytest.mark.parametrize(
    ("address", "count", "message"),
    [
        (OUT, 17, "68 bytes from 0x980100 on are not in one buffer; the nearest is out, 0x980100 to 0x980140"),
        (A + 64, 1, "4 bytes from 0x980040 on .* is a, 0x980000 to 0x980040"),
        (OUT - 4, 1, "is out"),
        (0, 1, "is a"),
        (-4, 1, "is a"),
        (1 << 40, 1, "is out"),
        (OUT, -1, "-1 numbers of uint32"),
    ],
)
def test_an_address_outside_every_buffer_names_the_nearest(
    captured: reconverge.Launch, address: int, count: int, message: str
) -> None:
    with pytest.raises(reconverge.Error, match=message):
        captured.run().at(address, count)


def test_objects_have_no_bytes_and_other_machines_no_addresses(captured: reconverge.Launch) -> None:
    with pytest.raises(reconverge.Error, match="1 numbers of object"):
        captured.run().at(OUT, 1, object)  # type: ignore[type-var]
    launch = reconverge.kernel("mandel", "r700", lanes=64)
    assert launch.buffers == {}
    with pytest.raises(reconverge.Error, match="no buffers with addresses"):
        launch.run().at(0)
