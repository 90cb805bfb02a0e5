"""The system calls that a model's programs do without: those that hold memory no process is charged for.

What a file of memory (memfd), a System V segment or queue, or a key holds is in no process's address space:
limits on processes do not see it. The filter answers such calls as a kernel would that does not have them. It
is a program for bubblewrap's --seccomp: classic BPF, seccomp(2), over `struct seccomp_data`.
"""

from __future__ import annotations

import platform
import struct

_DENIED = {
    # memfd_create, memfd_secret, shmget, msgget, semget, mq_open, io_uring_setup, bpf, userfaultfd, add_key
    "x86_64": (0xC000003E, (319, 447, 29, 68, 64, 240, 425, 321, 323, 248)),
    "aarch64": (0xC00000B7, (279, 447, 194, 186, 190, 180, 425, 280, 282, 217)),
}
"""Machine → its AUDIT_ARCH_ number and those of the calls (asm/unistd.h)."""

_X32_BIT = 1 << 30
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCH_AT = 0, 4
_ALLOW, _ERRNO, _ENOSYS = 0x7FFF0000, 0x00050000, 38


def syscall_filter() -> bytes | None:
    """The program; None on a machine whose system calls have numbers that are not written here."""
    if platform.machine() not in _DENIED:
        return None
    arch, denied = _DENIED[platform.machine()]
    deny_at = 4 + len(denied) + 1  # the last instruction
    program = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 0, deny_at - 2, arch),  # calls of another architecture have other numbers
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, deny_at - 4, 0, _X32_BIT),
    ]
    program += [(_EQUAL, deny_at - 4 - n - 1, 0, number) for n, number in enumerate(denied)]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
