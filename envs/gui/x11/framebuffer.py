"""What Xvfb shows, read from the memory that it draws into (-fbdir): no request, pointer included."""

from __future__ import annotations

import mmap
import os
import struct

import numpy as np

from vlrl.types import ByteArray

_COLOUR_BYTES = 12  # an entry of the colour map between header and pixels


class Framebuffer:
    """The screen of one server. Its file is an X window dump (XWDFile.h, version 7): big-endian header."""

    def __init__(self, path: str) -> None:
        """Map the file.

        Raises:
            OSError: if there is none.
        """
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._memory = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(handle)
        header = struct.unpack_from(">25I", self._memory)
        start = header[0] + header[19] * _COLOUR_BYTES
        width, height, line_bytes = header[4], header[5], header[12]
        pixels = np.frombuffer(self._memory, np.uint8, line_bytes * height, start)
        self._bgrx = pixels.reshape(height, line_bytes // 4, 4)[:, :width]

    def close(self) -> None:
        """Let the file go; it has a descriptor."""
        self._bgrx = np.empty((0, 0, 4), np.uint8)
        self._memory.close()

    def read(self) -> ByteArray:
        """[height, width, 3] uint8 RGB, a copy."""
        bgrx = self._bgrx
        rgb = np.empty((*bgrx.shape[:2], 3), np.uint8)
        for channel in range(3):  # four times as fast as one copy with the channels turned round
            rgb[..., channel] = bgrx[..., 2 - channel]
        return rgb
