"""Training under the guide's names, call by call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.runs.testing import assert_same
from marlab.market.guide import (
    GlobalCoordinator,
    HorizonManagerPPO,
    HRLXFTrainer,
    TemporalDecisionTransformer,
    TrainConfig,
    load_l4_distill_data,
    load_model,
    load_tournament_data,
    save_model,
)
from tests.market.sample_tools import TINY


@pytest.mark.parametrize("records", [False, True], ids=["lists", "records"])
def test_the_guides_training_sequence(tmp_path: Path, records: bool) -> None:
    """§ training of the guide: L2, backfill, L3, L4, saving and continuing, with few epochs."""
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "tiny.parquet").write_bytes(TINY.read_bytes())
    folder, out = str(tmp_path), str(tmp_path / "out")
    small = {"l3_batch_size": 64, "device": "cpu"}

    def given(items):  # the guide's lists, or plain lists of the same records
        return list(items) if records else items

    macro, _ = load_tournament_data(folder, agent_name="Pe", num_workers=1, goal_backfill="none")
    cfg = TrainConfig(l2_epochs=2, l3_epochs=1, output_dir=out, horizon=40, **small)
    l2 = HorizonManagerPPO(horizon=cfg.horizon)
    l3 = TemporalDecisionTransformer(horizon=cfg.horizon, d_model=16, n_layers=1)
    trainer = HRLXFTrainer(l2, l3, None, cfg)
    trainer.train_phase0_bc(given(macro), [])
    save_model(l2, out, "l2_bc.pt")
    _, micro = load_tournament_data(
        folder, agent_name="Pe", num_workers=1, goal_backfill="l2", l2_model_path=f"{out}/l2_bc.pt"
    )
    trainer.train_phase0_bc([], given(micro))
    save_model(l3, out, "l3_bc.pt")
    trainer.train_phase1_awr(given(micro))
    drawn = load_l4_distill_data(
        folder, agent_name="Pe", goal_source="l2", l2_model_path=f"{out}/l2_bc.pt", num_workers=1
    )
    l4 = GlobalCoordinator(horizon=cfg.horizon, thread_feat_dim=24, global_feat_dim=30)
    HRLXFTrainer(None, None, l4, TrainConfig(output_dir=out, horizon=40, l4_epochs=1, device="cpu")).train_l4_distill(
        given(drawn)
    )
    save_model(l4, out, "l4_distill.pt")
    again = HorizonManagerPPO(horizon=40)
    load_model(again, f"{out}/l2_bc.pt")
    assert_same(again.state_dict(), l2.state_dict(), "l2")
    more = replace(cfg, l2_epochs=3, l2_resume_path=f"{out}/l2_bc_epoch2.ckpt.pt")
    history = HRLXFTrainer(again, None, None, more).train_phase0_bc(given(macro), [])["l2"]
    assert [row["l2_bc/epoch"] for row in history] == [3.0]  # epochs are the total
    with pytest.raises(UserError):
        HRLXFTrainer(again, None, None, replace(more, l2_resume_path=f"{out}/none.ckpt.pt")).train_phase0_bc(macro, [])
    assert {p.name for p in trainer.save_all("final")} == {"l2_final.pt", "l3_final.pt"}
