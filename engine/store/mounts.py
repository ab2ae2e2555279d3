"""The file system that a folder is on, so that messages can name what does not work there. Known on Linux only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.errors import StorageError

MOUNTS = Path("/proc/self/mounts")
_NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs lustre gpfs beegfs davfs fuse.sshfs fuse.glusterfs fuse.ceph "
    "fuse.s3fs fuse.gcsfuse fuse.rclone fuse.davfs2".split()
)
_OCTAL = re.compile(r"\\([0-7]{3})")  # the escape of a space or another character in a path


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    point: Path
    kind: str  # as Linux names it: ext4, nfs4, ...
    is_read_only: bool

    @property
    def is_network(self) -> bool:
        """Whether other machines may see the same files."""
        return self.kind in _NETWORK


def mount_of(path: Path, mounts: Path = MOUNTS) -> Mount | None:
    """The mount that a path lies on, whether the path exists or not; None where the system lists none."""
    try:
        lines = mounts.read_text("utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place, found = path.resolve(), None
    for line in lines:  # of two mounts at one point, the later one hides the other
        _, point, kind, options, *_ = line.split(" ")
        at = Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), point))
        if (place == at or at in place.parents) and (found is None or len(at.parts) >= len(found.point.parts)):
            found = Mount(at, kind, "ro" in options.split(","))
    return found


def network_note(path: Path, mounts: Path = MOUNTS) -> str:
    """A line about an index on a network file system; "" for one on a disk of this machine."""
    mount = mount_of(path, mounts)
    if mount is None or not mount.is_network:
        return ""
    return (
        f"{path} lies on a network file system ({mount.kind} at {mount.point}): SQLite's log works on one machine "
        "alone, so let only this machine open the index until the run has ended"
    )


def refuse_read_only(path: Path, mounts: Path = MOUNTS) -> None:
    """Refuse to write below a read-only mount.

    Raises:
        StorageError: `path` lies on one.
    """
    mount = mount_of(path, mounts)
    if mount is not None and mount.is_read_only:
        raise StorageError(
            f"{path} lies on {mount.point} ({mount.kind}), which is mounted read-only; name a folder "
            "elsewhere, or restore a backup there: longmatch upkeep restore FILE FOLDER"
        )
