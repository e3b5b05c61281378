"""Notes on commands that are accepted and still worth a remark, with a fix where one is known."""

from __future__ import annotations

from jobs.dialects import placeholders
from jobs.dialects.base import Fix
from jobs.dialects.findings import Findings
from jobs.dialects.jupyter_commands import fix_command
from jobs.dialects.syntax import INVISIBLE


def remark_on(command: str, pointer: str, findings: Findings, role: str = "") -> None:
    """Note invisible characters, passwords, and a Jupyter that anybody could use."""
    if found := INVISIBLE.search(command):
        findings.note("invisible_character", pointer, character=f"U+{ord(found[0]):04X}")
    if placeholders.holds_password(command):
        findings.note("password_in_command", pointer)
    fixed = fix_command(command)
    if fixed:
        found_wrong = ",".join(fixed.findings)
        findings.note("command_mended", pointer, Fix(pointer, fixed.command), role=role, findings=found_wrong)
