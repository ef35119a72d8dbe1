"""Where to compute: what can be asked for, and the sentence when it is not there."""

from __future__ import annotations

import pytest
import torch

from marlab.lab.device import choose_device
from marlab.lab.errors import UserError


def test_auto_takes_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")


@pytest.mark.parametrize("name", ["gpu", "meta", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"device is '{name}', expected auto, cpu, cuda or cuda:N"):
        choose_device(name)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="'cuda:1', but this machine has no usable GPU"):
        choose_device("cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("cuda:0").index == 0
    with pytest.raises(UserError, match=r"'cuda:1', but this machine has 1 GPU\(s\)"):
        choose_device("cuda:1")
