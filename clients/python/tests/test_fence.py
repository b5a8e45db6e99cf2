"""Late holders are refused."""

from __future__ import annotations

import contextlib
import doctest
import threading
from pathlib import Path

import pytest

import quorate.fence
from quorate.fence import Guard, Stale, replace


def test_the_examples_are_true() -> None:
    assert doctest.testmod(quorate.fence).failed == 0


def test_several_units_are_admitted_together_or_not_at_all() -> None:
    guard = Guard({"a": 5, "b": 7})
    with pytest.raises(Stale) as late:
        guard.admit_all({"a": 6, "b": 6})
    assert (late.value.unit, late.value.seen) == ("b", 7)
    assert guard.seen() == {"a": 5, "b": 7}
    guard.admit_all({"a": 6, "b": 7})
    assert guard.seen() == {"a": 6, "b": 7}


def test_a_late_writer_finds_the_file_closed(tmp_path: Path) -> None:
    file = tmp_path / "state"
    replace(file, "db", 3, b"first")
    replace(file, "db", 12, b"next")
    replace(file, "db", 12, b"again")
    with pytest.raises(Stale):
        replace(file, "db", 3, b"late")
    assert file.read_bytes() == b"again"
    # As the crate for Rust writes it.
    assert Path(f"{file}.fence").read_bytes() == b"00000000000000000012\n"

    def write(fence: int) -> None:
        with contextlib.suppress(Stale):
            replace(file, "db", fence, str(fence).encode() * 1000)

    writers = [threading.Thread(target=write, args=(fence,)) for fence in range(20, 40)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert file.read_bytes() == b"39" * 1000
