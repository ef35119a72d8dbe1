"""Imported by Dask's scheduler and workers before they start: they open no web server, which nobody here looks at."""

from __future__ import annotations

from typing import Any

from distributed.node import ServerNode


def _no_server(self: ServerNode, *args: Any, **kwargs: Any) -> None:
    pass


ServerNode.start_http_server = _no_server  # type: ignore[method-assign]
