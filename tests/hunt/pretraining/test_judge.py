"""What a run of models of others leaves behind."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from marlab.hunt.pretraining.judge import final_verdict
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.verdict import texts


def test_history_run_is_complete(history_run: Path):
    text = (history_run / "eval" / "final.json").read_text()
    final = json.loads(text)
    assert "NaN" not in text and "Infinity" not in text
    assert set(final["splits"]) == {"train", "validation", "test"}
    validation = final["splits"]["validation"]
    assert set(validation["ceilings"]) == {"known", "bayes", "mixture"}
    assert validation["moa"]["floor"] == pytest.approx(validation["ceilings"]["known"]["cross_entropy"], abs=0.1)
    assert {probe["t"] for probe in final["probes"]} >= {0, 1} and len(final["vae"]["kl_per_dimension"]) == 16
    assert all(0 <= probe[k]["balanced"] <= 1 for probe in final["probes"] for k in ("code", "state_code", "state"))
    assert set(final["belief"]) == {"exact", "learned"} and final["data"]["post_exit_share"] == 0
    codes = pq.read_table(history_run / "eval" / "codes.parquet")
    assert codes.num_rows == validation["moa"]["rows"] and len(codes["code"][0]) == 16
    for epoch in (0, 1):
        assert {p.suffix for p in (history_run / "eval").glob(f"moa_eval_epoch{epoch}.*")} == {".csv", ".json", ".npz"}
    figures = {p.name for p in (history_run / "figures").glob("*.png")}
    assert figures == {"losses.png", "epochs.png", "predictions.png", "codes.png", "belief.png"}
    rows = read_metrics(history_run / "metrics.jsonl")
    assert [row["stage"] for row in rows] == ["vae", "history"]
    assert "[MOA] epoch 1: top1=" in (history_run / "log.txt").read_text()
    record = json.loads((history_run / "run.json").read_text())
    assert record["status"] == "finished" and 0 < record["results"]["validation_top1"] < 1
    assert record["results"]["best_epoch"] == 1, "only epochs of the final stage can be the best"


@pytest.mark.parametrize(("gain", "words"), [(0.1, "Knowing goals helps"), (-0.1, "Knowing goals harms")])
def test_verdicts(gain: float, words: str) -> None:
    scores = {
        "moa": {"top1": 0.6, "rows": 100},
        "gain": {"value": gain, "low": gain - 0.02, "high": gain + 0.02},
        "ceilings": {"known": {"top1": 0.7}},
    }
    first, _ = texts(final_verdict({"splits": {"validation": scores}}), "run")
    assert first.startswith(words) and "60.0 % [50.2 %, 69.1 %]" in first and "70.0 % is the most" in first
