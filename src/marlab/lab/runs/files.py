"""Writing files so that a crash leaves either the old content or the new one, never half of each."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from marlab.lab.errors import UserError

try:
    import fcntl
except ImportError:  # Windows: nothing tells there whether a writer lives, so nothing that it began is removed
    fcntl = None  # type: ignore[assignment]

LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}\.tmp")
"""What the temporary files of `replacing` are called."""
BINARY: int = getattr(os, "O_BINARY", 0)
"""What Windows needs to be told, so that it leaves bytes alone."""
_LOOKED_INTO: set[Path] = set()
"""Folders where this process has removed what killed writers left."""


@contextmanager
def replacing(path: Path, wait: bool = True) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success it becomes `path`, on failure it is removed.

    wait: until the disk has it, so that a power cut loses nothing; not for what can be made again at any time.
    """
    refuse_links(path)
    folder = path.parent.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if folder not in _LOOKED_INTO:
        _remove_dead(folder, os.listdir(folder))
        _LOOKED_INTO.add(folder)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    temporary, held = Path(name), _alone(handle)
    if not held:
        os.close(handle)
    try:
        yield temporary
        if wait:
            _sync(temporary)
        temporary.chmod(0o666 & ~_UMASK)  # mkstemp makes private files; a result should be readable as usual
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    finally:
        if held:
            os.close(handle)
    if wait:
        _sync(path.parent)


def append(path: Path, data: bytes) -> None:
    """Add to the end of a file, in one write: a kill leaves all of it, nothing, or a cut last line."""
    refuse_links(path)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, 0o666)
    try:
        append_to(handle, data)
    finally:
        os.close(handle)


def append_to(handle: int, data: bytes) -> None:
    """The same where the file is open already."""
    left = memoryview(data)
    while left:  # a signal or a nearly full disk may cut a write short
        left = left[os.write(handle, left) :]


def end_broken_line(path: Path) -> None:
    """Make sure that the next line begins on its own: a kill may have cut the last one."""
    if not path.exists():
        return
    try:
        open_regular(path).close()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from None
    if path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


def tidy(folder: Path) -> None:
    """Make a run's folder fit to be written to: what writers that were killed left of files is removed, and links and
    pipes are refused, through which something elsewhere would be written. Runs inside it have their own starts."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not Path(place, name, "run.json").exists()]
        _remove_dead(Path(place), names)
        for path in (Path(place, name) for name in (*folders, *names)):
            if path.is_symlink() or not (path.is_file() or path.is_dir() or not path.exists()):
                raise UserError(f"{path} is a link or a pipe; nothing of a run is written through one: remove it.")


def _remove_dead(folder: Path, names: Iterable[str]) -> None:
    """Remove temporary files whose writer is gone: a living one has its file locked."""
    for name in filter(LEFTOVER.fullmatch, names):
        with suppress(OSError):
            handle = os.open(folder / name, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _alone(handle):
                    (folder / name).unlink()
            finally:
                os.close(handle)


def _alone(handle: int) -> bool:
    """Lock an open file; False where another process has it, or where the file system cannot tell."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def refuse_links(path: Path) -> None:
    """Refuse to write through a link to a folder inside a run, which may come from a stranger: files elsewhere would be
    overwritten. A run and the folders above it may be links; a link in place of the file itself is replaced."""
    for folder in path.absolute().parents:
        if folder.is_symlink() and any((above / "run.json").exists() for above in folder.parents):
            raise UserError(
                f"{folder} is a link to another folder; nothing of a run is written through one: remove it."
            )


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False, default=_number) + "\n")


def _number(value: Any) -> Any:
    """A value of numpy or torch as Python's own."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no JSON value")


def plain_json(value: Any) -> Any:
    """The same nested values with None where a number is not finite: JSON knows neither NaN nor infinity."""
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it. In a folder from a stranger a pipe or a device may stand in its place, whose reading does
    not end: that is an OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return os.fdopen(handle, "rb")


def read_bytes(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def read_text(path: Path) -> str:
    return read_bytes(path).decode("utf-8")


MOST_UNPACKED = 1 << 28
"""Bytes that a compressed file may unpack to: a megabyte can be made to unpack to a gigabyte."""


def read_gzip(path: Path, count: int | None = None) -> bytes:
    """The content of a file that may be compressed, or its first `count` bytes; whatever is wrong is an OSError."""
    with open_regular(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        source: Any = gzip.GzipFile(fileobj=file) if packed else file
        if count is not None or not packed:
            return _unpacked(source, path, -1 if count is None else count)
        data = bytearray()
        while block := _unpacked(source, path, 1 << 20):  # to ask for all of it would set aside all that it may have
            data += block
            if len(data) > MOST_UNPACKED:
                raise OSError(errno.EFBIG, f"It unpacks to more than {MOST_UNPACKED >> 20} MiB", str(path))
    return bytes(data)


def _unpacked(source: Any, path: Path, count: int) -> bytes:
    try:
        found: bytes = source.read(count)
    except (EOFError, zlib.error) as error:
        raise OSError(errno.EINVAL, first_line(error), str(path)) from None
    return found


def read_json(path: Path, fail: Callable[[str], Exception]) -> Any:
    """Parse a JSON file; `fail` turns the reason into the caller's exception."""
    try:
        return json.loads(read_text(path))
    except FileNotFoundError:
        raise fail(f"{path} does not exist") from None
    except RecursionError:
        raise fail(f"{path} is nested too deeply to be one of ours") from None
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise fail(f"{path} is not valid JSON ({str(error)[:200]})") from None
    except OSError as error:
        raise fail(f"{path} cannot be read ({error.strerror})") from None


def read_table(path: Path, fail: Callable[[str], Exception]) -> dict[str, Any]:
    """A JSON file that holds a table, such as settings or a record."""
    data = read_json(path, fail)
    if not isinstance(data, dict):
        raise fail(f"{path} holds {str(data)[:40]!r}, not a table")
    return data


@contextmanager
def trusting(what: str, fail: Callable[[str], Exception] = UserError) -> Iterator[None]:
    """Use the content of a file that may come from anybody: whatever it makes the code stumble over, keys that are
    missing, wrong types, lengths or shapes, becomes one sentence that begins with `what`."""
    try:
        yield
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        raise fail(f"{what}: {first_line(error)}.") from None


def first_line(error: BaseException) -> str:
    """What an error says, in short."""
    name = type(error).__name__
    said = (str(error).strip().splitlines() or [""])[0].rstrip(".")[:200]
    return f"{name} {said}".strip() if isinstance(error, KeyError | IndexError | AttributeError) else said or name


def _sync(path: Path) -> None:
    """Push a file or a folder entry to the disk, where the platform can."""
    try:
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)  # some systems sync writable files only
    except OSError:  # folders cannot be opened on every platform
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _read_umask()  # once, at import: the call is not thread-safe
