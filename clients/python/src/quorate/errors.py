"""What can go wrong, by name."""

from __future__ import annotations


class QuorateError(Exception):
    """Anything that a cluster, or the way to it, would not do."""


class Timeout(QuorateError, TimeoutError):
    """The units were not granted in time. The claim was cancelled, or says that it may not be."""


class Refused(QuorateError):
    """The cluster would not take the claim: the text says why, and what to do."""


class TooLarge(Refused):
    """The pool could never grant it."""


class UnknownPool(Refused):
    """There is no such pool."""


class Unreachable(QuorateError):
    """No node answers."""


class GrantLost(QuorateError):
    """The units may be somebody else's: stop using them."""
