from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from marlab.lab.errors import UserError
from marlab.lab.notebook import panels, serve
from marlab.lab.notebook.serve import LARGEST_MESSAGE, Notebook, is_data
from tests.lab.notebook.served import serving
from tests.lab.report.cases import make_run

STRANGE = ("x.js.gz", "x.js.bz2", "x.js.xz", "x.js.br", "x.js.Z", "x.es", "x.mjs", "x.JS.gz", "x.ecma", "x.htc")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.txt").write_text("secret")
    root = folder / "runs"
    path = make_run(root, "fish/a")
    make_run(root, "fish/b", {"lr": 0.5, "fish": 25, "net": {"width": 64}})
    (path / "media" / "film.mp4").write_bytes(bytes(range(100)))
    os.symlink(folder / "secret.txt", path / "link.txt")
    (path / "report" / "data").mkdir(parents=True)
    (path / "report" / "data" / "evil.js").write_text('notebook.receive("x",alert(1));\n')
    (path / "linked").mkdir()
    os.symlink(folder / "secret.txt", path / "linked" / "index.html")
    for name in STRANGE:
        (path / name).write_text("document.title = 'taken'")
    (path / "own.html").write_text("<script src='x.js.gz'></script>")
    with serving(Notebook(root)) as opened:
        yield opened


def ask(
    server: Notebook,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    token: str | None = None,
    **headers: str,
) -> tuple[int, Any, bytes]:
    """(status, headers, body); `Host=...` and others replace what a browser would send."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(
        method, f"/{server.token}{path}" if token is None else token + path, skip_host="Host" in named
    )
    for name, value in {**named, **({"Content-Length": str(len(body))} if body is not None else {})}.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def own(server: Notebook) -> str:
    return f"http://{server.hosts[0]}"


def test_pages_are_served_with_a_rule_of_what_they_may_load(server: Notebook) -> None:
    status, headers, body = ask(server, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>marlab" in body
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert ask(server, "/fish/a/report/index.html?lang=zh")[0] == 200
    assert ask(server, "/", "HEAD")[2] == b""
    assert ask(server, "/fish/a/run.json")[1]["Content-Type"] == "text/plain; charset=utf-8"


def test_only_this_machine_can_connect(server: Notebook) -> None:
    listening = [c.laddr.ip for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_LISTEN
                 and c.laddr.port == server.server_address[1]]  # fmt: skip
    assert listening == ["127.0.0.1"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""]
)
def test_other_hosts_are_refused(server: Notebook, host: str) -> None:
    assert ask(server, "/", Host=host)[0] == 403


def test_a_request_names_one_host(server: Notebook) -> None:
    with socket.create_connection(server.server_address, timeout=20) as raw:  # type: ignore[arg-type]
        raw.sendall(f"GET /{server.token}/ HTTP/1.1\r\nHost: {server.hosts[0]}\r\nHost: evil.example\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 403")


def test_other_origins_are_refused_and_followed_links_are_not(server: Notebook) -> None:
    for origin in ("http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"):
        assert ask(server, "/_notebook/runs.js", Origin=origin)[0] == 403
    assert ask(server, "/_notebook/runs.js", Origin=own(server))[0] == 200
    for site in ("cross-site", "same-site"):
        assert (
            ask(server, "/_notebook/runs.js", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="script")[0]
            == 403
        )
        assert ask(server, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe")[0] == 403
        assert ask(server, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document")[0] == 200


OUTSIDE = (
    "/../secret.txt",
    "/fish/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/fish/a/link.txt",
    "/fish/a/linked/",
    "/fish/a/linked/index.html",
    "/..%2fsecret.txt",
    "//etc/passwd",
    "/fish",
    "/fish/a/nothing",
    "/fish/a/%00",
    "/..%5csecret.txt",
    "/fish/a/report/",
)


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_of_the_runs_is_read(server: Notebook, path: str) -> None:
    status, _, body = ask(server, path)
    assert status in (403, 404) or path == "/fish/a/report/"
    assert b"secret" not in body
    assert b"root:" not in body


def test_scripts_are_the_notebooks_own_or_plain_data(server: Notebook) -> None:
    assert ask(server, "/_notebook/notebook.js")[0] == 200
    assert ask(server, "/fish/a/report/data/evil.js")[0] == 403
    assert is_data('notebook.receive("run-1",{"a":[1,"\\u003c"]});\n')
    for wrong in (
        'notebook.receive("x",alert(1));\n',
        'x;notebook.receive("x",1);\n',
        'notebook.receive("x",1);alert(1);\n',
        "",
    ):
        assert not is_data(wrong)


@pytest.mark.parametrize("name", STRANGE)
def test_no_name_makes_a_strangers_file_a_script(server: Notebook, name: str) -> None:
    status, headers, _ = ask(server, f"/fish/a/{name}")
    assert (status, headers["Content-Type"]) == (200, "application/octet-stream")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_html_that_is_not_ours_is_in_a_sandbox(server: Notebook) -> None:
    assert ask(server, "/fish/a/own.html")[1]["Content-Security-Policy"].endswith("; sandbox")
    for place in ("/", "/fish/a/report/index.html", "/_notebook/compare.html"):
        assert "sandbox" not in ask(server, place)[1]["Content-Security-Policy"]


@pytest.mark.parametrize("token", ["", "/", "/wrong", "/_notebook", "/%00"])
def test_who_does_not_know_the_address_is_refused(server: Notebook, token: str) -> None:
    for path in ("/", "/fish/a/run.json", "/_changed"):
        status, _, body = ask(server, path, token=token)
        assert status in (400, 403) and b"token" in body


@pytest.mark.parametrize("path", ["http://[", "/%5b", "/" + "a" * 70_000, "/_changed?since=" + "9" * 5000])
def test_any_address_has_an_answer(server: Notebook, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    for token in (None, ""):
        assert ask(server, path, token=token, Host=server.hosts[0])[0] in (200, 400, 403, 404, 414)
    assert capfd.readouterr().err == ""


def test_numbers_of_thousands_of_digits_are_refused(server: Notebook) -> None:
    long = "9" * 5000
    assert ask(server, "/fish/a/media/film.mp4", Range=f"bytes={long}-")[0] == 200
    refused = ask(server, "/_act/a/b", "POST", None, Origin=own(server), Content_Length=long)
    assert refused[0] == 400


def test_what_an_action_stumbles_over_is_one_sentence(
    server: Notebook, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(message: dict[str, Any], root: Path) -> dict[str, Any]:
        if "echo" in message:
            return message
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(serve, "action", lambda world, name: fail)
    heads = {"Origin": own(server), "Content_Type": "application/json"}
    status, _, said = ask(server, "/_act/a/b", "POST", b"{}", **heads)
    assert (status, json.loads(said)) == (
        500,
        {"error": "This cannot be answered: [Errno 28] No space left on device."},
    )
    assert ask(server, "/_act/a/b", "POST", b'{"echo": "\\ud800"}', **heads)[0] == 200
    assert capfd.readouterr().err == ""


def test_a_file_that_becomes_shorter_ends_the_answer(server: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve.Handler, "_range", lambda self, size: (0, size + 99))
    with socket.create_connection(server.server_address, timeout=20) as raw:  # type: ignore[arg-type]
        raw.sendall(f"GET /{server.token}/fish/a/media/film.mp4 HTTP/1.1\r\nHost: {server.hosts[0]}\r\n\r\n".encode())
        while raw.recv(1 << 16):  # until the server closes: without that, the reader waits for 100 bytes more
            pass


def test_silent_and_surplus_connections_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MOST_CONNECTIONS", 8)
    with serving(Notebook(tmp_path)) as crowded:
        silent = [socket.create_connection(crowded.server_address, timeout=20) for _ in range(12)]  # type: ignore[arg-type]
        assert ask(crowded, "/")[0] == 200
        for early in silent[:4]:
            assert early.recv(1) == b""  # closed, because later ones came
        monkeypatch.setattr(serve, "REQUEST_TIME", 0.0)
        late = socket.create_connection(crowded.server_address, timeout=20)  # type: ignore[arg-type]
        assert late.recv(1) == b""  # closed, because it said nothing for too long
        for each in (*silent, late):
            each.close()


def test_films_are_answered_in_parts(server: Notebook) -> None:
    path = "/fish/a/media/film.mp4"
    status, headers, body = ask(server, path, Range="bytes=10-19")
    assert (status, headers["Content-Range"], body) == (206, "bytes 10-19/100", bytes(range(10, 20)))
    assert ask(server, path, Range="bytes=90-")[2] == bytes(range(90, 100))
    for odd in ("bytes=-5", "bytes=a-b", "lines=1-2", "bytes=200-300"):
        assert ask(server, path, Range=odd)[0] == 200


def test_runs_are_compared_by_the_lab(server: Notebook) -> None:
    status, _, body = ask(server, "/_compare?run=fish/a&run=fish/b")
    found = json.loads(body)
    assert (status, [row["name"] for row in found["rows"]]) == (200, ["lr=0.0003", "lr=0.5"])
    assert found["verdict"][0]["en"].startswith("lr=0.5 and lr=0.0003")
    for wrong in ("/_compare", "/_compare?run=fish/a", "/_compare?run=../x&run=fish/a"):
        assert ask(server, wrong)[0] in (400, 403, 404)


def test_a_page_learns_what_has_changed(server: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "SHORTEST_PAUSE", 0.0)
    first = json.loads(ask(server, "/_changed?since=0")[2])
    assert first["runs"] == []
    os.utime(server.root / "fish" / "b" / "metrics.jsonl", (5, 5))
    now = json.loads(ask(server, f"/_changed?since={first['stamp']}")[2])
    assert now == {"stamp": first["stamp"] + 1, "runs": ["fish/b"]}
    assert json.loads(ask(server, "/_changed?since=x")[2])["runs"] == []


def greet(message: dict[str, Any], root: Path) -> dict[str, Any]:
    if message["name"] == "nobody":
        raise UserError("Nobody cannot be greeted.")
    return {"said": f"hello {message['name']}"}


def test_actions_of_worlds_answer_pages_of_this_notebook_alone(
    server: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        serve, "action", lambda world, name: greet if (world, name) == ("pond", "greet") else panels.action(world, name)
    )

    def post(body: bytes, path: str = "/_act/pond/greet", **headers: str) -> tuple[int, dict[str, Any]]:
        status, _, said = ask(
            server, path, "POST", body, **{"Origin": own(server), "Content_Type": "application/json", **headers}
        )
        return status, json.loads(said)

    assert post(b'{"name": "fish"}') == (200, {"said": "hello fish"})
    assert post(b'{"name": "nobody"}') == (400, {"error": "Nobody cannot be greeted."})
    assert post(b"{}")[0] == 400
    assert post(b"[1]")[0] == 400
    assert post(b"{")[0] == 400
    assert post(b'{"name": "x"}', Content_Type="text/plain")[0] == 415
    assert post(b'{"name": "x"}', Origin="http://evil.example")[0] == 403
    assert post(b'{"name": "x"}', path="/_act/fish/nothing")[0] == 400
    assert post(b'{"name": "x"}', path="/elsewhere")[0] == 404
    assert ask(server, "/_act/pond/greet", "POST", b'{"name": "x"}', Content_Type="application/json")[0] == 403
    assert (
        ask(server, "/_act/pond/greet", "POST", None, Origin=own(server), Content_Length=str(LARGEST_MESSAGE + 1))[0]
        == 400
    )


def test_a_port_that_is_taken_is_refused_in_one_sentence(server: Notebook) -> None:
    with pytest.raises(UserError, match="cannot be used"):
        serve.serve(server.root, server.server_address[1], "en")


def test_a_folder_that_cannot_be_written_is_not_the_ports_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(serve, "build", fail)
    with pytest.raises(PermissionError):
        Notebook(tmp_path)
