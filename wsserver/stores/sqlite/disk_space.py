"""Whether a file keeps the space it was given, and what is left of a disk where not.

Where what is overwritten goes to another place (btrfs, ZFS, bcachefs), where space is
only promised (a network, FUSE) or where another file system decides (overlayfs), a disk
can be full for a file that was there in full. What a process copies to a mapping of it
then ends the process (SIGBUS) or is lost later; a write is refused. So what is not known
to keep the space counts as what does not: a system call a token is the lesser harm.
"""

import errno
import os
import re
from pathlib import Path

SPARE_BYTES = 16_777_216
"""What is left alone. SQLite maps the index of its write-ahead log into memory, so it is
not to begin where the space may end."""

_KEEPING = frozenset((b"ext2", b"ext3", b"ext4", b"tmpfs", b"xfs"))
"""XFS shares blocks only between a file and its copies, and nobody copies ours."""

_PROC = Path("/proc/self")  # nothing such where the system is not Linux


def keeps_space(file: int, proc: Path = _PROC) -> bool:
    """Returns whether an open file can be overwritten on a full disk.

    Args:
        file: Its descriptor.
        proc: What the system tells of this process.
    """
    # By the mount's number: paths may be covered by other mounts, and the device is that
    # of a subvolume on btrfs.
    try:
        about = (proc / "fdinfo" / str(file)).read_bytes()
        mounts = (proc / "mountinfo").read_bytes()
    except OSError:
        return False
    number = re.search(rb"^mnt_id:\s*([0-9]+)$", about, re.MULTILINE)
    if number is None:
        return False
    kind = re.search(rb"^%b .*? - (\S+) " % number[1], mounts, re.MULTILINE)
    return kind is not None and kind[1] in _KEEPING


def check_spare(file: int | Path) -> None:
    """Returns if there is space left on the disk of a file that keeps none.

    Raises:
        OSError: There is not.
    """
    disk = os.statvfs(file)
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < SPARE_BYTES:
        least = SPARE_BYTES >> 20
        raise OSError(errno.ENOSPC, f"less than {least} MiB are left on the disk")
