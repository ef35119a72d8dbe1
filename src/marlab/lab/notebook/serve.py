"""`marlab report --serve`: the notebook on loopback, made again while runs go on.

Who may ask: whoever knows the address that was printed, since a token in it keeps out other users of this machine, and
no page of another origin that is open in the same browser. What is answered: files inside the folder of runs, links out
of it not followed. Run folders may come from strangers, so no script of theirs is served under any name, and their HTML
is shown in a sandbox. Worlds may offer actions (`marlab.lab.notebook.panels`), which take and give JSON.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
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
from marlab.lab.runs.folders import place_of

LOOPBACK = "127.0.0.1"
SHORTEST_PAUSE = 1.5
"""Seconds between two looks at the folder of runs, however often pages ask."""
LARGEST_MESSAGE = 1_000_000
MOST_CONNECTIONS = 128
"""Open at once; beyond that the one that has been silent longest is closed."""
REQUEST_TIME, ANSWER_TIME = 10.0, 300.0
"""Seconds that a client may take to say what it wants, and to read the answer."""
RULE = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What anything that is served may load. Scripts are the notebook's own; the data of runs are looked at before."""
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TEXT, SCRIPT = "text/plain; charset=utf-8", "text/javascript; charset=utf-8"
KINDS = {
    **dict.fromkeys((".txt", ".md", ".json", ".jsonl", ".toml", ".csv"), TEXT),
    ".html": "text/html; charset=utf-8",
    ".js": SCRIPT,
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
"""Types by suffix, a list of our own: the system's would send `x.js.gz` as a script. All else is bytes to keep."""
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
    request_queue_size = 128

    def __init__(self, root: Path, port: int = 0, language: str = "en") -> None:
        try:
            super().__init__((LOOPBACK, port), Handler)
        except OSError as error:
            why = error.strerror or error
            raise UserError(f"Port {port} cannot be used ({why}); name another one, or 0 for any.") from None
        self.root, self.language = root.resolve(), language
        self.token = secrets.token_urlsafe(16)
        self.stamp = 1
        self.changed: dict[str, int] = {}  # folder of a run -> the stamp of its newest page
        self.scripts: set[Path] = set()  # the notebook's own
        self._looking, self._looked = threading.Lock(), 0.0
        self._deadlines: dict[socket.socket, float] = {}  # when an open connection is closed unless something happens
        try:
            self.look()
        except BaseException:
            self.server_close()
            raise

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}/{self.token}/"

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
            self.scripts = site.assets
            if site.made or site.gone:
                self.stamp += 1
                self.changed |= {place_of(path, self.root): self.stamp for path in site.made}
            self._looked = time.monotonic()

    # --- connections: a bound on their number and on how long each may be silent ----------------------------------

    def process_request(self, request: Any, client_address: Any) -> None:
        self.allow(request, REQUEST_TIME)
        open_now = sorted(self._deadlines.copy().items(), key=lambda item: item[1])
        for old, _ in open_now[: max(0, len(open_now) - MOST_CONNECTIONS)]:
            self._hang_up(old)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def allow(self, connection: socket.socket, seconds: float) -> None:
        """Give an open connection so many seconds from now."""
        self._deadlines[connection] = time.monotonic() + seconds

    def service_actions(self) -> None:
        now = time.monotonic()
        for connection, deadline in self._deadlines.copy().items():
            if deadline < now:
                self._hang_up(connection)

    def _hang_up(self, connection: socket.socket) -> None:
        self._deadlines.pop(connection, None)
        with suppress(OSError):  # the client was faster
            connection.shutdown(socket.SHUT_RDWR)  # its thread sees the end of what it reads, and closes

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is nothing to speak of; anything else is one line."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            print(f"marlab: a request could not be answered: {first_line(error)}", file=sys.stderr)


class Handler(BaseHTTPRequestHandler):
    """One connection and its requests."""

    server: Notebook
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "marlab", ""
    timeout = 30
    command = ""

    def handle_one_request(self) -> None:
        self.server.allow(self.connection, REQUEST_TIME)
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_HEAD(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, work: Any) -> None:
        self.server.allow(self.connection, ANSWER_TIME)
        self._begun = False  # whether a part of the answer has been sent
        try:
            self._check()
            work(self._path())
        except Refused as refusal:
            self._refuse(str(refusal), refusal.status)
        except ConnectionError:  # the reader left
            self.close_connection = True
        except Exception as error:  # a damaged file, a disk that fails, a world's action: the server goes on
            self._refuse(f"This cannot be answered: {first_line(error)}.", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _refuse(self, why: str, status: HTTPStatus) -> None:
        self.close_connection = True  # what is left of the request is not read
        if not self._begun:
            self._headers_buffer: list[bytes] = []
            self._json({"error": why}, status)

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

    def _path(self) -> str:
        """What is asked for, without the token, which must be there."""
        try:
            path = urlsplit(self.path).path
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "That is no address.") from None
        token, slash, rest = path.lstrip("/").partition("/")
        if not slash or not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(
                HTTPStatus.FORBIDDEN, "Open the whole address that `marlab report --serve` printed: it holds a token."
            )
        return rest

    # --- reading --------------------------------------------------------------------------------------------------

    def _get(self, path: str) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        if path == "_changed":
            return self._changed(asked)
        if path == "_compare":
            return self._compare(asked.get("run", []))
        file = self._inside(unquote(path))
        if file.is_dir() and (path == "" or path.endswith("/")):
            file = self._inside(unquote(path) + "index.html")
        return self._file(file)

    def _changed(self, asked: Mapping[str, list[str]]) -> None:
        """What has changed since the stamp that a page knows."""
        self.server.look()
        since = asked.get("since", ["0"])[0]
        known = _number(since) or 0
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
        if not file.is_file():
            raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.")
        kind = KINDS.get(file.suffix.lower(), "application/octet-stream")
        if kind == SCRIPT and file not in self.server.scripts and not is_data(file.read_text(errors="replace")):
            raise Refused(HTTPStatus.FORBIDDEN, "That is no script of the notebook.")
        with file.open("rb") as source:
            size = file.stat().st_size
            first, last = self._range(size)
            partial = (first, last) != (0, size - 1)
            self.send_response(HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK)
            self._headers(kind, last - first + 1, sandbox=not self._is_page(file))
            self.send_header("Accept-Ranges", "bytes")
            if partial:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.end_headers()
            source.seek(first)
            left = 0 if self.command == "HEAD" else last - first + 1
            while left > 0 and (block := source.read(min(BLOCK, left))):
                self.wfile.write(block)
                left -= len(block)
        if left > 0:  # the file became shorter meanwhile: the reader must not wait for the rest
            self.close_connection = True

    def _is_page(self, file: Path) -> bool:
        """Whether this is the place of one of the notebook's own pages."""
        place = file.relative_to(self.server.root).parts
        return place[-2:] in (("index.html",), ("report", "index.html")) or place[0] == FOLDER

    def _range(self, size: int) -> tuple[int, int]:
        """The bytes that a player of films asks for; all of them where it asks for none or for nonsense."""
        unit, _, wanted = self.headers.get("Range", "").partition("=")
        begin, dash, end = wanted.partition("-")
        first, last = _number(begin), _number(end) if end else size - 1
        if unit != "bytes" or not dash or first is None or last is None or first > min(last, size - 1):
            return 0, size - 1
        return first, min(last, size - 1)

    # --- acting ---------------------------------------------------------------------------------------------------

    def _post(self, path: str) -> None:
        words = path.split("/")
        if len(words) != 3 or words[0] != "_act":
            raise Refused(HTTPStatus.NOT_FOUND, "Nothing here takes messages.")
        if self.headers.get("Origin") is None:
            raise Refused(HTTPStatus.FORBIDDEN, "Messages come from pages of this notebook only.")
        message = self._message()
        try:
            answer = action(words[1], words[2])(message, self.server.root)
        except UserError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:  # a message that makes no sense
            raise Refused(HTTPStatus.BAD_REQUEST, f"The message cannot be answered: {first_line(error)}.") from None
        self._json(answer)

    def _message(self) -> dict[str, Any]:
        length = _number(self.headers.get("Content-Length", ""))
        if length is None or length > LARGEST_MESSAGE:
            raise Refused(
                HTTPStatus.BAD_REQUEST, f"A message has {LARGEST_MESSAGE:,} bytes at most, and says how many."
            )
        if self.headers.get("Content-Type", "").partition(";")[0] != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A message is JSON.")
        try:
            message = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            raise Refused(HTTPStatus.BAD_REQUEST, "The message is not valid JSON.") from None
        if not isinstance(message, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "A message is a JSON object.")
        return message

    # --- answering ------------------------------------------------------------------------------------------------

    def _json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        body = as_json(value).encode("utf-8", "replace")
        self.send_response(status)
        self._headers("application/json; charset=utf-8", len(body))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _headers(self, kind: str, length: int, sandbox: bool = True) -> None:
        rule = f"{RULE}; sandbox" if sandbox else RULE
        named = {"Content-Type": kind, "Content-Length": str(length), **SAFE, "Content-Security-Policy": rule}
        for name, value in named.items():
            self.send_header(name, value)

    def end_headers(self) -> None:
        self._begun = True
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses, such as a request that is not HTTP, in the form of all other refusals."""
        status = HTTPStatus(code)
        self._begun = False
        self._refuse(f"{message or status.phrase}.", status)

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


def _number(text: str) -> int | None:
    """A count as a client writes it; None for anything that cannot be one."""
    return int(text) if text.isdecimal() and len(text) < 16 else None


def serve(root: Path, port: int, language: str) -> None:
    """Serve until somebody presses Ctrl-C."""
    with Notebook(root, port, language) as server:
        print(f"The pages of {root} are at {server.address} (this machine only); Ctrl-C ends it.", flush=True)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print("")
