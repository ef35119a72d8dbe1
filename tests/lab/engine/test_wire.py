"""Messages and files between the processes of the engine: they arrive whole, or not at all."""

from __future__ import annotations

import os
import socket

from marlab.lab.engine.wire import anonymous_file, close_files, read_file, receive_message, send_message


def test_anonymous_files_hold_what_was_written() -> None:
    content = os.urandom(3_000_000)
    descriptor = anonymous_file(content)
    assert read_file(descriptor) == content == read_file(descriptor)
    close_files([descriptor, descriptor])


def test_messages_arrive_one_by_one_with_their_files() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        content = anonymous_file(b"large data")
        send_message(ours, {"number": 1}, [content])
        send_message(ours, {"text": "ä" * 1_000})
        close_files([content])  # the receiver has a descriptor of its own
        first, files = receive_message(theirs) or ({}, [])
        assert first == {"number": 1} and [read_file(file) for file in files] == [b"large data"]
        assert not any(os.get_inheritable(file) for file in files)
        assert receive_message(theirs) == ({"text": "ä" * 1_000}, [])
        close_files(files)


def test_a_message_cut_off_is_no_message() -> None:
    for part in (b"", b"\0\0", b"\0\0\0\x20" + b'{"half": '):
        ours, theirs = socket.socketpair()
        with theirs:
            with ours:
                ours.sendall(part)
            assert receive_message(theirs) is None
