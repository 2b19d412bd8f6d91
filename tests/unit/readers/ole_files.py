"""OLE files (MS-CFB) for tests: no library of Python writes them."""

import struct
from itertools import pairwise

_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_SECTOR, _MINI, _SMALL = 512, 64, 4096


def ole(streams: dict[str, bytes]) -> bytes:
    """A file with these streams, by their paths."""
    names = {"": 5}
    for path in streams:
        folders = path.split("/")[:-1]
        names |= {"/".join(folders[: depth + 1]): 1 for depth in range(len(folders))}
        names[path] = 2
    paths = list(names)
    children: dict[str, list[str]] = {path: [] for path in paths}
    for path in paths[1:]:
        children[path.rpartition("/")[0]].append(path)
    right: dict[str, int] = {}
    for each in children.values():
        each.sort(key=lambda path: (len(path.rpartition("/")[2]), path.rpartition("/")[2].upper()))
        right |= {first: paths.index(second) for first, second in pairwise(each)}
    fat: list[int] = []
    body = bytearray()

    def place(data: bytes) -> int:
        count = -(-len(data) // _SECTOR)
        if not count:
            return _END
        start = len(fat)
        fat.extend([*range(start + 1, start + count), _END])
        body.extend(data.ljust(count * _SECTOR, b"\0"))
        return start

    mini, mini_fat, starts = bytearray(), [], {}
    for path, data in streams.items():
        if len(data) >= _SMALL:
            starts[path] = place(data)
        elif data:
            starts[path] = start = len(mini_fat)
            count = -(-len(data) // _MINI)
            mini_fat.extend([*range(start + 1, start + count), _END])
            mini.extend(data.ljust(count * _MINI, b"\0"))
    starts[""] = place(bytes(mini))
    mini_start = place(b"".join(struct.pack("<I", each) for each in mini_fat).ljust(_SECTOR, b"\xff") if mini else b"")
    entries = b""
    for path in paths:
        name = (path.rpartition("/")[2] or "Root Entry").encode("utf-16-le") + b"\0\0"
        size = len(mini) if not path else len(streams.get(path, b""))
        child = paths.index(children[path][0]) if children[path] else _FREE
        links = struct.pack("<III", _FREE, right.get(path, _FREE), child)
        entries += name.ljust(64, b"\0") + struct.pack("<HBB", len(name), names[path], 1) + links
        entries += bytes(36) + struct.pack("<IQ", starts.get(path, 0 if names[path] == 1 else _END), size)
    directory = place(entries.ljust(-(-len(entries) // _SECTOR) * _SECTOR, b"\0"))
    count = -(-(len(fat) + 1) // 127)
    first = len(fat)
    fat.extend([_FAT] * count)
    table = b"".join(struct.pack("<I", each) for each in fat).ljust(count * _SECTOR, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    head += struct.pack("<IIIIIIIII", 0, count, directory, 0, _SMALL, mini_start, int(bool(mini)), _END, 0)
    head += b"".join(struct.pack("<I", first + each) for each in range(count))
    return head.ljust(_SECTOR, b"\xff") + bytes(body) + table
