"""Which disks are networks."""

from pathlib import Path

import pytest

from console.configuration.filesystem import network_filesystem, network_type

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:50 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/ann/scratch rw - xfs /dev/sdb1 rw
32 22 0:51 / /mnt/a\040share rw - cifs //server/share rw
33 22 0:52 / /data rw - fuse.sshfs server:/data rw
34 22 0:53 / /apps rw - fuse.portal portal rw
35 22 8:3 / /over rw - ext4 /dev/sdc1 rw
36 35 0:54 / /over rw - lustre mgs:/fs rw
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/console", None),
        ("/home/ann/console", "nfs4"),
        ("/homestead", None),
        ("/home/ann/scratch/console", None),
        ("/mnt/a share/console", "cifs"),
        ("/data", "fuse.sshfs"),
        ("/apps/x", None),
        ("/over/x", "lustre"),
    ],
)
def test_network_type_follows_innermost_and_latest_mount(path: str, kind: str | None) -> None:
    assert network_type(MOUNTS, Path(path)) == kind


def test_network_filesystem_reads_mounts_of_this_machine(tmp_path: Path) -> None:
    assert network_filesystem(tmp_path / "not" / "yet" / "there") is None
