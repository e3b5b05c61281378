"""Lines of public kernel logs, and the GPU faults that they show.

Sources: github.com/NVIDIA/open-gpu-kernel-modules issues 446 and 1118 and its source, NVIDIA/NVSentinel
issue 155, Bumblebee-Project/Bumblebee issue 554, wtdcode/vllm-backport issue 62.
"""

from __future__ import annotations

import pytest

from jobs.fault_tolerance.error_catalogue import Origin
from jobs.fault_tolerance.kernel_log import parse_line


@pytest.mark.parametrize(
    ("line", "pci", "number", "code", "origin", "pid"),
    [
        (
            "NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus",
            "0000:44:00",
            79,
            "gpu_lost",
            Origin.PLATFORM,
            0,
        ),
        (
            "[  +6.010643] NVRM: Xid (PCI:0000:83:00): 119, pid=2710030, name=nvidia-smi, Timeout waiting",
            "0000:83:00",
            119,
            "gpu_lost",
            Origin.PLATFORM,
            2710030,
        ),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9). RST: No",
            "0000:01:00",
            94,
            "gpu_ecc",
            Origin.PLATFORM,
            7194,
        ),
        (
            "May 29 18:02:30 host kernel: NVRM: Xid (PCI:0000:01:00): 31, Ch 00000010, intr 10000000",
            "0000:01:00",
            31,
            "gpu_kernel",
            Origin.UNKNOWN,
            0,
        ),
        (
            "[   49.261458] NVRM: GPU at 0000:01:00.0 has fallen off the bus.",
            "0000:01:00",
            79,
            "gpu_lost",
            Origin.PLATFORM,
            0,
        ),
    ],
)
def test_line_of_a_kernel_log_tells_gpu_and_fault(
    line: str, pci: str, number: int, code: str, origin: Origin, pid: int
) -> None:
    found = parse_line(line)
    assert found is not None
    assert (found.pci, found.number, found.code, found.origin, found.pid) == (pci, number, code, origin, pid)
    assert found.at_s is None


def test_record_of_kmsg_tells_when() -> None:
    found = parse_line("6,901,100500000,-;NVRM: Xid (PCI:0000:3b:00): 48, pid=1, Ch 00000008")
    assert found is not None
    assert (found.at_s, found.code, found.line) == (
        100.5,
        "gpu_ecc",
        "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, Ch 00000008",
    )


@pytest.mark.parametrize(
    "line",
    [
        "[   49.261465] NVRM: os_pci_init_handle: invalid context!",
        "[ 1843.439669] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01",
        "6,902,101,-;amdgpu 0000:c3:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
        "",
    ],
)
def test_other_lines_show_no_fault(line: str) -> None:
    assert parse_line(line) is None
