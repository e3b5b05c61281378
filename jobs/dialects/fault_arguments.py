"""Arguments of the vendors' fault tolerance: what is documented of each, and whose words they are.

`jobs.fault_tolerance` makes a policy of them.  An argument is of one vendor, so that none reaches
another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from jobs.dialects.argument_text import find_arguments, set_argument


class Vendor(StrEnum):
    """The vendor whose argument it is."""

    DLC = "dlc"
    AIHC = "aihc"


class ArgumentKind(StrEnum):
    """Kind of the value of an argument; SECONDS and MINUTES are whole numbers."""

    FLAG = "flag"
    COUNT = "count"
    SECONDS = "seconds"
    MINUTES = "minutes"
    WORD = "word"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class FaultArgument:
    """One argument.  `default` counts where it is not given, "" where none is published.

    `acts` says that the console's own fault tolerance uses it.
    """

    name: str
    vendor: Vendor
    kind: ArgumentKind
    source: str
    default: str = ""
    words: tuple[str, ...] = ()
    acts: bool = False

    def fits(self, value: str) -> bool:
        """Tell whether a value is of its kind."""
        match self.kind:
            case ArgumentKind.FLAG:
                return value.lower() in {"true", "false"}
            case ArgumentKind.WORD:
                return value in self.words
            case ArgumentKind.TEXT:
                return bool(value)
            case _:
                return value.isascii() and value.isdecimal() and len(value) <= _DIGITS


_DIGITS: Final = 9
_DLC: Final = "DLC page, AIMaster"
_SDK: Final = "DLC SDK example"
_SCRIPTS: Final = "scripts"
_OPERATOR: Final = "older AIMaster"
_AIHC: Final = "AIHC page"

_FLAG, _COUNT, _SECONDS = ArgumentKind.FLAG, ArgumentKind.COUNT, ArgumentKind.SECONDS
_MINUTES, _WORD, _TEXT = ArgumentKind.MINUTES, ArgumentKind.WORD, ArgumentKind.TEXT

REPEATABLE: Final = "custom-log-patterns"

ARGUMENTS: Final = (
    FaultArgument("job-execution-mode", Vendor.DLC, _WORD, _DLC, "Sync", ("Sync", "Async"), acts=True),
    FaultArgument("enable-job-restart", Vendor.DLC, _FLAG, _DLC, "False", acts=True),
    FaultArgument("max-num-of-job-restart", Vendor.DLC, _COUNT, _DLC, "3", acts=True),
    FaultArgument("job-restart-timeout", Vendor.DLC, _SECONDS, _SCRIPTS, "1800"),
    FaultArgument("enable-job-hang-detection", Vendor.DLC, _FLAG, _DLC, acts=True),
    FaultArgument("job-hang-interval", Vendor.DLC, _SECONDS, _SCRIPTS, "1800", acts=True),
    FaultArgument("enable-c4d-hang-detection", Vendor.DLC, _FLAG, _SCRIPTS),
    FaultArgument("enable-log-hang-detection", Vendor.DLC, _FLAG, _SDK, acts=True),
    FaultArgument("log-hang-interval-in-seconds", Vendor.DLC, _SECONDS, _OPERATOR, acts=True),
    FaultArgument("enable-local-detection", Vendor.DLC, _FLAG, _SCRIPTS),
    FaultArgument("enable-perftracker", Vendor.DLC, _FLAG, _SCRIPTS, acts=True),
    FaultArgument(
        "fault-tolerant-policy",
        Vendor.DLC,
        _WORD,
        _SCRIPTS,
        words=("OnFailure", "ExitCodeAndErrorMsg"),
        acts=True,
    ),
    FaultArgument("execution-mode", Vendor.DLC, _WORD, _OPERATOR, words=("Sync", "Async"), acts=True),
    FaultArgument("max-tolerate-failure-rate", Vendor.DLC, _TEXT, _OPERATOR),
    FaultArgument("max-num-of-same-error", Vendor.DLC, _COUNT, _OPERATOR, acts=True),
    FaultArgument("enable-pod-completed-detection", Vendor.DLC, _FLAG, _OPERATOR),
    FaultArgument("pod-completed-interval-in-seconds", Vendor.DLC, _SECONDS, _OPERATOR),
    FaultArgument("enable-log-redirect-to-nas", Vendor.DLC, _FLAG, _OPERATOR),
    FaultArgument("enable-replace", Vendor.AIHC, _FLAG, _AIHC, acts=True),
    FaultArgument("enable-hang-detection", Vendor.AIHC, _FLAG, _AIHC, acts=True),
    FaultArgument("hang-detection-log-timeout-minutes", Vendor.AIHC, _MINUTES, _AIHC, acts=True),
    FaultArgument("hang-detection-startup-toleration-minutes", Vendor.AIHC, _MINUTES, _AIHC, acts=True),
    FaultArgument("hang-detection-stack-timeout-minutes", Vendor.AIHC, _MINUTES, _AIHC, acts=True),
    FaultArgument("max-num-of-unconditional-retry", Vendor.AIHC, _COUNT, _AIHC, acts=True),
    FaultArgument(REPEATABLE, Vendor.AIHC, _TEXT, _AIHC, acts=True),
)

WITH_FIELD: Final = tuple(each for each in ARGUMENTS if each.source != _OPERATOR and each.name != REPEATABLE)
"""Arguments with a field of their own; older names, and what may be repeated, stay as they are written."""

BY_NAME: Final[Mapping[str, FaultArgument]] = MappingProxyType({each.name: each for each in ARGUMENTS})


def are_of(vendor: Vendor, text: str) -> bool:
    """Return whether arguments in `text` are in the words of a vendor."""
    return any(known.vendor is vendor for known, _value in list_known(text))


def remove_arguments(vendor: Vendor, text: str) -> str:
    """Return a text without the arguments of a vendor; what nobody knows stays beside those of another."""
    if not are_of(vendor, text):
        return text
    names = {known.name: known.vendor for known, _value in list_known(text)}
    if set(names.values()) == {vendor}:
        return ""
    for name in (name for name, owner in names.items() if owner is vendor):
        text = set_argument(text, name, "")
    return text


def list_known(text: str) -> Iterator[tuple[FaultArgument, str]]:
    """Yield the known arguments of a text with their values, each as often as it is given."""
    for argument in find_arguments(text):
        if (known := BY_NAME.get(argument.name)) is not None:
            yield known, argument.value
