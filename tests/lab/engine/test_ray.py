"""The engine ray by itself: outcomes of references, and settings that are put back."""

from __future__ import annotations

import os

import pytest
from ray import exceptions
from ray._private import ray_constants

from marlab.lab.engine import ray as engine_ray
from marlab.lab.engine.wire import Outcome


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.TaskCancelledError(), "cancelled"),
        (exceptions.WorkerCrashedError(), "died"),
        (exceptions.RayTaskError("play", "Traceback ...", ValueError("no luck")), "raised"),
    ],
)
def test_every_end_of_a_task_is_an_outcome(error: Exception, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def get(_: object) -> Outcome:
        raise error

    monkeypatch.setattr(engine_ray.ray, "get", get)
    outcome = engine_ray._outcome("a reference")
    assert outcome.kind == kind and "Ray" in outcome.error


def test_settings_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    before, flag = dict(os.environ), ray_constants.ENABLE_RAY_CLUSTER
    with engine_ray.quiet(), engine_ray.loopback_only():
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
        assert ray_constants.ENABLE_RAY_CLUSTER is False
    assert dict(os.environ) == before and flag == ray_constants.ENABLE_RAY_CLUSTER


def test_each_local_cluster_has_a_secret_of_its_own() -> None:
    tokens = []
    for _ in range(2):
        with engine_ray._secret():
            tokens.append(os.environ["RAY_AUTH_TOKEN"])
            assert os.environ["RAY_AUTH_MODE"] == "token" and len(tokens[-1]) == 64
    assert tokens[0] != tokens[1] and "RAY_AUTH_TOKEN" not in os.environ
