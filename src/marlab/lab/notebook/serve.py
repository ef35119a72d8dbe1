"""`marlab report --serve`: the notebook on loopback, made again while runs go on.

A page of another origin that is open in the same browser must learn nothing and change nothing: a request is answered
only if it names this server as its host (a name that was bound to 127.0.0.1 afterwards is another name) and if the
browser does not say that another origin sent it. Files are answered from inside the folder of runs alone, links out of
it included. Worlds may offer actions (`marlab.lab.notebook.panels`), which take and give JSON.
"""

from __future__ import annotations

import json
import mimetypes
import re
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from marlab.lab.errors import UserError
from marlab.lab.notebook.panels import action
from marlab.lab.notebook.sheet import FOLDER, as_json
from marlab.lab.notebook.site import build
from marlab.lab.runs.files import first_line

LOOPBACK = "127.0.0.1"
SHORTEST_PAUSE = 1.5
"""Seconds between two looks at the folder of runs, however often pages ask."""
LARGEST_MESSAGE = 1_000_000
RULE = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What anything that is served may load. Scripts are the notebook's own; the data of runs are looked at before."""
SAFE = {
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store", "Content-Security-Policy": RULE,
}  # fmt: skip
DATA = re.compile(r'notebook\.receive\("[\w.-]+",(.*)\);\n', re.DOTALL)
BLOCK = 1 << 18


class Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Notebook(ThreadingHTTPServer):
    """A server of one folder of runs."""

    daemon_threads = True

    def __init__(self, root: Path, port: int = 0, language: str = "en") -> None:
        super().__init__((LOOPBACK, port), Handler)
        self.root, self.language = root.resolve(), language
        self.stamp = 1
        self.changed: dict[str, int] = {}  # folder of a run -> the stamp of its newest page
        self._looking, self._looked = threading.Lock(), 0.0
        self.look()

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """Names by which a browser may call this server."""
        port = self.server_address[1]
        return f"{LOOPBACK}:{port}", f"localhost:{port}"

    def look(self) -> None:
        """Make pages of runs that have changed; several askers look once."""
        with self._looking:
            if self._looked and time.monotonic() - self._looked < SHORTEST_PAUSE:
                return
            site = build(self.root, self.language)
            if site.made or site.gone:
                self.stamp += 1
                self.changed |= {path.relative_to(self.root).as_posix(): self.stamp for path in site.made}
            self._looked = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Notebook
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "marlab", ""
    timeout = 30

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_HEAD(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, work: Any) -> None:
        try:
            self._check()
            work()
        except Refused as refusal:
            self.close_connection = True  # what is left of the request is not read
            self._json({"error": str(refusal)}, refusal.status)
        except (BrokenPipeError, ConnectionResetError):  # the reader left
            self.close_connection = True

    def _check(self) -> None:
        """Refuse what another host or origin sends."""
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise Refused(HTTPStatus.FORBIDDEN, "This notebook answers to its own address only.")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            raise Refused(HTTPStatus.FORBIDDEN, "Pages of other origins are not answered.")
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        followed = self.headers.get("Sec-Fetch-Mode") == "navigate" and self.headers.get("Sec-Fetch-Dest") == "document"
        if site not in ("same-origin", "none") and not (self.command == "GET" and followed):
            raise Refused(HTTPStatus.FORBIDDEN, "Pages of other origins are not answered.")

    # --- reading --------------------------------------------------------------------------------------------------

    def _get(self) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        if parts.path == "/_changed":
            return self._changed(asked)
        if parts.path == "/_compare":
            return self._compare(asked.get("run", []))
        return self._file(self._inside(unquote(parts.path)))

    def _changed(self, asked: Mapping[str, list[str]]) -> None:
        """What has changed since the stamp that a page knows."""
        self.server.look()
        since = asked.get("since", ["0"])[0]
        known = int(since) if since.isdecimal() and len(since) < 12 else 0
        newer = sorted(place for place, stamp in list(self.server.changed.items()) if stamp > known)
        self._json({"stamp": self.server.stamp, "runs": newer if known else []})

    def _compare(self, places: list[str]) -> None:
        from marlab.lab.notebook.compare_page import compared

        try:
            runs = [self._inside(place) for place in places]
            self._json(compared(runs, self.server.root))
        except UserError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None

    def _inside(self, path: str) -> Path:
        """The file or folder of runs that an address means; refused where it lies elsewhere, by a link too."""
        if "\0" in path or "\\" in path:
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.")
        target = self.server.root / path.lstrip("/")
        try:
            found = target.resolve(strict=True)
        except (OSError, RuntimeError):
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.") from None
        if not found.is_relative_to(self.server.root):
            raise Refused(HTTPStatus.FORBIDDEN, "That lies outside of the folder of runs.")
        return found

    def _file(self, file: Path) -> None:
        if file.is_dir():
            if not self.path.partition("?")[0].endswith("/"):
                raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.")
            file = file / "index.html"
        if not file.is_file():
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.")
        if file.suffix.lower() in (".js", ".mjs") and not self._is_ours(file):
            raise Refused(HTTPStatus.FORBIDDEN, "That is no script of the notebook.")
        with file.open("rb") as source:
            size = file.stat().st_size
            first, last = self._range(size)
            partial = (first, last) != (0, size - 1)
            self.send_response(HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK)
            self._headers(_kind(file), last - first + 1)
            self.send_header("Accept-Ranges", "bytes")
            if partial:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.end_headers()
            source.seek(first)
            left = 0 if self.command == "HEAD" else last - first + 1
            while left > 0 and (block := source.read(min(BLOCK, left))):
                self.wfile.write(block)
                left -= len(block)

    def _is_ours(self, file: Path) -> bool:
        """Whether a script is the notebook's own, or nothing but data: run folders may come from strangers."""
        if file.is_relative_to(self.server.root / FOLDER):
            return True
        return is_data(file.read_text(encoding="utf-8", errors="replace"))

    def _range(self, size: int) -> tuple[int, int]:
        """The bytes that a player of films asks for; all of them where it asks for none or for nonsense."""
        unit, _, wanted = self.headers.get("Range", "").partition("=")
        begin, dash, end = wanted.partition("-")
        if unit != "bytes" or not dash or not begin.isdecimal() or (end and not end.isdecimal()):
            return 0, size - 1
        first, last = int(begin), min(int(end) if end else size - 1, size - 1)
        return (first, last) if first <= last else (0, size - 1)

    # --- acting ---------------------------------------------------------------------------------------------------

    def _post(self) -> None:
        words = urlsplit(self.path).path.split("/")
        if len(words) != 4 or words[:2] != ["", "_act"]:
            raise Refused(HTTPStatus.NOT_FOUND, "Nothing here takes messages.")
        if self.headers.get("Origin") is None:
            raise Refused(HTTPStatus.FORBIDDEN, "Messages come from pages of this notebook only.")
        message = self._message()
        try:
            answer = action(words[2], words[3])(message, self.server.root)
        except UserError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:  # a message that makes no sense
            raise Refused(HTTPStatus.BAD_REQUEST, f"The message cannot be answered: {first_line(error)}.") from None
        self._json(answer)

    def _message(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_MESSAGE:
            raise Refused(
                HTTPStatus.BAD_REQUEST, f"A message has {LARGEST_MESSAGE:,} bytes at most, and says how many."
            )
        if self.headers.get("Content-Type", "").partition(";")[0] != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A message is JSON.")
        try:
            message = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise Refused(HTTPStatus.BAD_REQUEST, "The message is not valid JSON.") from None
        if not isinstance(message, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "A message is a JSON object.")
        return message

    # --- answering ------------------------------------------------------------------------------------------------

    def _json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        body = as_json(value).encode()
        self.send_response(status)
        self._headers("application/json; charset=utf-8", len(body))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _headers(self, kind: str, length: int) -> None:
        for name, value in {"Content-Type": kind, "Content-Length": str(length), **SAFE}.items():
            self.send_header(name, value)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not worth a line each."""


def is_data(script: str) -> bool:
    """Whether a script hands over plain JSON and does nothing else."""
    match = DATA.fullmatch(script)
    if match is None:
        return False
    try:
        json.loads(match[1])
    except (ValueError, RecursionError):
        return False
    return True


def _kind(file: Path) -> str:
    """The type of a file; what is neither a page, nor data of one, nor a picture is text or something to keep."""
    known = {".js": "text/javascript", ".css": "text/css", ".webp": "image/webp", ".svg": "image/svg+xml"}
    guessed = known.get(file.suffix.lower()) or mimetypes.guess_type(file.name)[0]
    if file.suffix.lower() in (".txt", ".md", ".jsonl", ".json", ".toml", ".csv"):
        guessed = "text/plain"
    text = guessed is not None and guessed.startswith("text/")
    return f"{guessed}; charset=utf-8" if text else guessed or "application/octet-stream"


def serve(root: Path, port: int, language: str) -> None:
    """Serve until somebody presses Ctrl-C."""
    try:
        server = Notebook(root, port, language)
    except OSError as error:
        raise UserError(f"Port {port} cannot be used ({error.strerror}); name another one, or 0 for any.") from None
    with server:
        print(f"The notebook of {root} is at {server.address} (this machine only); Ctrl-C ends it.", flush=True)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print("")
