"""A search recorded once and replayed: on a GPU the whole search becomes one CUDA graph.

A search of small tensors launches thousands of kernels that each take microseconds, so the host cannot keep up.
Nothing in a search waits for the device, so all of it can be recorded, whatever `expand` does included, as long as
that does not wait either (no `.item()`, no shapes that depend on values) and draws from a registered generator only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from marlab.lab.search.search import Embedding, Evaluation, Expand, SearchConfig, SearchResult, search

RecordedSearch = Callable[[Evaluation, Embedding], SearchResult]
"""Searches from roots of the recorded shapes. On a GPU the next call overwrites the result of the last."""


def record_search(
    root: Evaluation,
    embedding: Embedding,
    expand: Expand,
    config: SearchConfig,
    generator: torch.Generator | None = None,
    drawn_by_expand: Sequence[torch.Generator] = (),
) -> RecordedSearch:
    """A search of roots like the given ones. `drawn_by_expand`: generators that `expand` uses besides `generator`.

    Without a GPU this is `search` itself. With one, weights that `expand` reads may change between calls only in
    place. Set `max_depth`: a recorded walk always takes as many steps as it may, so deep limits cost time.
    """
    if root.value.device.type != "cuda":
        return lambda new_root, new_embedding: search(new_root, new_embedding, expand, config, generator)
    inputs: list[Tensor] = [part.clone() for part in (*root, *embedding)]

    def run() -> SearchResult:
        return search(Evaluation(*inputs[:3]), tuple(inputs[3:]), expand, config, generator)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()  # makes lookup tables and lets libraries choose their kernels, which must not happen while recording
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    for source in {id(g): g for g in (generator, *drawn_by_expand) if g is not None}.values():
        graph.register_generator_state(source)
    with torch.cuda.graph(graph):
        result = run()

    def replay(new_root: Evaluation, new_embedding: Embedding) -> SearchResult:
        for old, new in zip(inputs, (*new_root, *new_embedding)):
            old.copy_(new)
        graph.replay()
        return result

    return replay
