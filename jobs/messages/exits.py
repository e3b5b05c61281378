"""Exit codes and signals in words: the shell's conventions, and OpenPAI's job exit table."""

from __future__ import annotations

import signal
from typing import Final

from jobs.language import gettext
from jobs.messages.sentences import mark as _

_CODES: Final = {
    0: _("it succeeded"),
    1: _("the program reported an error; its last log lines usually say which"),
    2: _("the program or the shell was called wrongly"),
    125: _("the container could not be started"),
    126: _("the command was found but can't be executed"),
    127: _("the command was not found"),
    128: _("the program ended with an exit code that does not exist"),
    255: _("the program ended with -1 or with an error outside the usual range"),
    -210: _("a person stopped it"),
    -220: _("a person stopped it"),
    -1000: _("it was evicted from its node"),
    -1200: _("it used more memory than it was given"),
    -7100: _("its container's environment could not be prepared"),
    -7103: _("a port it needed was taken"),
    -7111: _("its node was lost"),
    -7120: _("it was preempted"),
    -7251: _("something that it names can't be used, a data folder for one"),
    -7252: _("the cluster could not give it all it needed at once in time"),
    -7300: _("the submission broke a rule of the cluster"),
    -7351: _("a person stopped it"),
    -7400: _("it was stopped because the job had ended"),
}
"""Negative codes are OpenPAI's own (job-exit-spec of v0.14, k8s-job-exit-spec of v1.8)."""

_SIGNALS: Final = {
    "SIGHUP": _("its terminal or session ended"),
    "SIGINT": _("it was interrupted, as by Ctrl-C"),
    "SIGQUIT": _("it was told to quit and dump its memory"),
    "SIGILL": _("the program executed an illegal instruction; it may be built for another processor"),
    "SIGTRAP": _("a debugger's breakpoint was hit"),
    "SIGABRT": _("the program aborted itself, as after a failed assertion"),
    "SIGBUS": _("the program accessed memory that can't be addressed; shared memory may be too small"),
    "SIGFPE": _("the program made an arithmetic error, as a division by zero"),
    "SIGKILL": _("it was killed, often because memory ran out"),
    "SIGUSR1": _("it was warned before its end and did not handle the warning"),
    "SIGUSR2": _("it was warned before its end and did not handle the warning"),
    "SIGSEGV": _("the program accessed memory that is not its own"),
    "SIGPIPE": _("the program wrote to a pipe that nobody read any more"),
    "SIGALRM": _("a timer of the program's own ran out"),
    "SIGTERM": _("it was asked to end"),
    "SIGXCPU": _("it used more processor time than it was allowed"),
    "SIGXFSZ": _("it wrote a file larger than allowed"),
    "SIGSYS": _("it made a system call that is not allowed"),
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
        meaning = _CODES.get(exit_code or 0, _("the program chose this code"))
        return gettext("Exit code %(code)s: %(meaning)s") % {"code": exit_code, "meaning": gettext(meaning)}
    name = signal_name(number)
    code = 128 + number if exit_code is None else exit_code
    known = _SIGNALS.get(name)
    if not known:
        return gettext("Exit code %(code)s: ended by %(signal)s") % {"code": code, "signal": name}
    words = {"code": code, "signal": name, "meaning": gettext(known)}
    return gettext("Exit code %(code)s: ended by %(signal)s, that is, %(meaning)s") % words


def _signal_of(exit_code: int | None) -> int | None:
    """Return the signal that an exit code stands for by the shell's convention."""
    if exit_code is None or exit_code in _CODES or not 128 < exit_code <= 128 + 64:
        return None
    return exit_code - 128
