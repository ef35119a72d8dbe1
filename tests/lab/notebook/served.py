"""A notebook that is served while a test runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from marlab.lab.notebook.serve import Notebook


@contextmanager
def serving(server: Notebook) -> Iterator[Notebook]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
