"""Exit codes and signals in words: the shell's conventions, and OpenPAI's job exit table."""

from __future__ import annotations

import signal
from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

_CODES: Final = {
    0: _("success"),
    1: _("program error; see the last log lines"),
    2: _("incorrect usage"),
    125: _("container could not be started"),
    126: _("command not executable"),
    127: _("command not found"),
    128: _("invalid exit code"),
    255: _("program returned -1 or an out-of-range code"),
    -210: _("stopped by a user"),
    -220: _("stopped by a user"),
    -1000: _("evicted from the node"),
    -1200: _("memory limit exceeded"),
    -7100: _("container environment could not be prepared"),
    -7103: _("required port in use"),
    -7111: _("node lost"),
    -7120: _("preempted"),
    -7251: _("a resource such as a data folder can't be used"),
    -7252: _("the cluster could not allocate all resources in time"),
    -7300: _("the submission violated a cluster policy"),
    -7351: _("stopped by a user"),
    -7400: _("stopped because the job ended"),
}
"""Negative codes are OpenPAI's own (job-exit-spec of v0.14, k8s-job-exit-spec of v1.8)."""

_SIGNALS: Final = {
    "SIGHUP": _("terminal or session closed"),
    "SIGINT": _("interrupted, e.g. by Ctrl-C"),
    "SIGQUIT": _("quit with core dump"),
    "SIGILL": _("illegal instruction; the program may be built for another processor"),
    "SIGTRAP": _("debugger breakpoint reached"),
    "SIGABRT": _("aborted by the program, e.g. after a failed assertion"),
    "SIGBUS": _("bus error; shared memory may be too small"),
    "SIGFPE": _("arithmetic error, e.g. division by zero"),
    "SIGKILL": _("killed, often because memory ran out"),
    "SIGUSR1": _("warning signal before the end was not handled"),
    "SIGUSR2": _("warning signal before the end was not handled"),
    "SIGSEGV": _("segmentation fault"),
    "SIGPIPE": _("broken pipe"),
    "SIGALRM": _("a timer of the program expired"),
    "SIGTERM": _("terminated"),
    "SIGXCPU": _("CPU time limit exceeded"),
    "SIGXFSZ": _("file size limit exceeded"),
    "SIGSYS": _("system call not allowed"),
}


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; `signal 77` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return gettext("signal %(number)s") % {"number": number}


def exit_message(exit_code: int | None, signal: int | None = None) -> str:
    """Return how a process ended; empty when nothing is known.

    A shell passes a signal on as 128 and its number, so such codes are told as signals too.
    """
    if exit_code is None and signal is None:
        return ""
    number = signal or _signal_of(exit_code)
    if not number:
        meaning = _CODES.get(exit_code or 0, _("set by the program"))
        return gettext("Exit code %(code)s (%(meaning)s)") % {"code": exit_code, "meaning": gettext(meaning)}
    name = signal_name(number)
    code = 128 + number if exit_code is None else exit_code
    known = _SIGNALS.get(name)
    if not known:
        return gettext("Exit code %(code)s: terminated by %(signal)s") % {"code": code, "signal": name}
    words = {"code": code, "signal": name, "meaning": gettext(known)}
    return gettext("Exit code %(code)s: %(meaning)s (%(signal)s)") % words


def _signal_of(exit_code: int | None) -> int | None:
    """Return the signal that an exit code stands for by the shell's convention."""
    if exit_code is None or exit_code in _CODES or not 128 < exit_code <= 128 + 64:
        return None
    return exit_code - 128
