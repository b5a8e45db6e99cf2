"""The other half of a lock: whatever a unit protects refuses those who hold it no more.

A holder that was paused may wake up after its lease ended and still do what it was about to do. So
it says its fence with everything it asks for, and the thing that is protected refuses smaller
fences than it has seen.

>>> guard = Guard()
>>> guard.admit("gpu-0", 7)
>>> guard.admit("gpu-0", 9)
>>> guard.admit("gpu-0", 7)
Traceback (most recent call last):
    ...
quorate.fence.Stale: fence 7 of unit gpu-0 is too late: a holder with 9 was here; nothing changed. \
Stop, and claim again
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from .errors import QuorateError

__all__ = ["Guard", "Stale", "replace"]


class Stale(QuorateError):
    """A later holder of the unit was here: the request must not be carried out."""

    def __init__(self, unit: str, fence: int, seen: int) -> None:
        super().__init__(
            f"fence {fence} of unit {unit} is too late: a holder with {seen} was here; "
            "nothing changed. Stop, and claim again"
        )
        self.unit, self.fence, self.seen = unit, fence, seen


class Guard:
    """The largest fence of each unit that was seen. It is memory: what outlives its process needs
    one that does, too, and compares and changes in one step (`replace`, or the guide on fences)."""

    def __init__(self, seen: Mapping[str, int] | None = None) -> None:
        self._seen = dict(seen or {})
        self._lock = threading.Lock()

    def admit(self, unit: str, fence: int) -> None:
        """Admits whoever says this fence, or raises Stale if somebody has said a larger one."""
        self.admit_all({unit: fence})

    def admit_all(self, fences: Mapping[str, int]) -> None:
        """Admits a request under several units, all or none."""
        with self._lock:
            for unit, fence in fences.items():
                seen = self._seen.get(unit, fence)
                if seen > fence:
                    raise Stale(unit, fence, seen)
            self._seen.update(fences)

    def seen(self) -> dict[str, int]:
        """The largest fence of each unit, for whoever wants to keep them."""
        with self._lock:
            return dict(self._seen)


def replace(path: str | os.PathLike[str], unit: str, fence: int, contents: bytes) -> None:
    """Replaces what is in a file, unless a later holder has written it: then Stale is raised, and
    nothing changed. Works with the crate `quorate-fence` on the same file."""
    path = Path(path)
    with open(f"{path}.fence", "a+b") as book:
        # Until it is closed: others wait for a moment.
        fcntl.flock(book, fcntl.LOCK_EX)
        book.seek(0)
        text = book.read().strip()
        seen = int(text) if text else None
        if seen is not None and seen > fence:
            raise Stale(unit, fence, seen)
        if seen != fence:
            # As long as any other, so that one write replaces the whole of it. (Not by `book`,
            # which appends.)
            with open(f"{path}.fence", "r+b", buffering=0) as out:
                out.write(b"%020d\n" % fence)
                os.fsync(out.fileno())
        draft = Path(f"{path}.new")
        with open(draft, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
