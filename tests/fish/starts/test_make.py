import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from marlab.fish.sea.dynamics import Predator, ballistic_step
from marlab.fish.starts.files import describe_starts, load_stages, load_starts, parse_stage_spec
from marlab.fish.starts.make import (
    StartsConfig,
    export_worst_seeds,
    make_starts,
    parse_sector_stage,
    states_of_history,
    states_of_records,
    worst_seed_export,
)
from marlab.lab.errors import UserError


def step_one_record(position: list[float], velocity: list[float], **more: Any) -> dict[str, Any]:
    return {"iteration": 16, "fish_idx": 3, "predator_position": position, "predator_velocity": velocity, **more}


def printed_spec(said: str) -> str:
    return said.strip().split("'")[1]


# --- by sector ----------------------------------------------------------------------------------------------


def test_stage_files_by_sector_are_what_they_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("ne:slow", "sw:0.5-1.5:24", "200-260:fast", "log-ne:any")
    assert make_starts(StartsConfig(stages=words, count=40, output_dir=tmp_path)) == tmp_path
    specs = parse_stage_spec(printed_spec(capsys.readouterr().out))
    assert [s.iterations for s in specs] == [16, 24, 16, 16]
    stages, warnings = load_stages(specs)
    assert not warnings
    for stage, (low, high), speeds in zip(
        stages, [(0, 90), (180, 270), (200, 260), (90, 150)], [(0.2, 1.2), (0.5, 1.5), (2, 3), (0.2, 3)]
    ):
        report = describe_starts(stage.starts)
        assert (report.entries, report.distinct, report.with_position) == (40, 40, 40)
        assert np.all((stage.starts.heading_deg >= low) & (stage.starts.heading_deg <= high))
        assert speeds[0] - 1e-6 <= report.speed_range[0] <= report.speed_range[1] <= speeds[1] + 1e-6
        assert np.linalg.norm(stage.starts.position, axis=1).max() <= 4.0 + 1e-6


def test_the_same_seed_makes_the_same_starts(tmp_path: Path) -> None:
    sets = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make_starts(StartsConfig(stages=("w:any",), count=9, seed=seed, output_dir=tmp_path / name))
        sets.append(load_starts(tmp_path / name / "stage1_w_any.json").velocity)
    assert np.array_equal(sets[0], sets[1]) and not np.array_equal(sets[0], sets[2])


def test_velocities_only(tmp_path: Path) -> None:
    make_starts(StartsConfig(stages=("n:fast",), count=5, full_states=False, output_dir=tmp_path))
    data = json.loads((tmp_path / "stage1_n_fast.json").read_text(encoding="utf-8"))
    assert len(data["velocities"]) == 5 and "states" not in data and data["type"] == "n"


@pytest.mark.parametrize("word", ["ne", "ne:slow:x", "ne:slow:0", "up:slow", "ne:quick", "90-10:slow", "a:b:c:d"])
def test_a_wrong_stage_word_is_one_sentence(word: str) -> None:
    with pytest.raises(UserError, match="--stages"):
        StartsConfig(stages=(word,))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"stages": ("ne:slow",), "source": Path("x.jsonl")},
        {"stages": ("ne:slow",), "count": 0},
        {"stages": ("ne:slow",), "position_radius": 11.0},
    ],
)
def test_impossible_requests_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        StartsConfig(**change)


def test_sector_names_and_numbers_parse() -> None:
    stage = parse_sector_stage("sw:slow:8", 16)
    assert (stage.sector, stage.speeds, stage.iterations) == ((180, 270), (0.2, 1.2), 8)


# --- from a run ---------------------------------------------------------------------------------------------


def history(path: Path) -> Path:
    def probed(seed: int, survival: float, lost: int) -> dict[str, Any]:
        return {
            "seed": seed,
            "min_survival_rate": survival,
            "step_one_count": lost,
            "predator_position": [0.1 * seed, 0.0],
            "predator_velocity": [0.0, -0.1 * seed],
        }

    probes = [
        {"iteration": 16, "episodes": [probed(1, 0.9, 0), probed(2, 0.5, 3)]},
        {"iteration": 32, "episodes": [probed(3, 0.7, 5), probed(4, 0.5, 1)]},
    ]
    path.write_text("\n".join(json.dumps(p) for p in probes) + "\n", encoding="utf-8")
    return path


def test_worst_episodes_become_full_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = history(tmp_path / "eval_multi_history.jsonl")
    make_starts(StartsConfig(source=source, count=3, output_dir=tmp_path / "out"))
    (spec,) = parse_stage_spec(printed_spec(capsys.readouterr().out))
    starts = load_starts(Path(spec.path))
    assert starts.velocity[:, 1].tolist() == pytest.approx([-0.2, -0.4, -0.3])
    assert starts.position[:, 0].tolist() == pytest.approx([0.2, 0.4, 0.3])
    data = json.loads(Path(spec.path).read_text(encoding="utf-8"))
    assert [s["arena_seed"] for s in data["states"]] == [2, 4, 3]


def test_episodes_with_step_one_deaths(tmp_path: Path) -> None:
    source = history(tmp_path / "eval_multi_history.jsonl")
    probes = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    assert [s["arena_seed"] for s in states_of_history(probes, "step_one", 9)] == [3, 2, 4]


def test_bad_sources_are_one_sentence(tmp_path: Path) -> None:
    empty = tmp_path / "a.jsonl"
    empty.write_text("", encoding="utf-8")
    broken = tmp_path / "b.jsonl"
    broken.write_text("{x\n", encoding="utf-8")
    number = tmp_path / "c.jsonl"
    number.write_text("3\n", encoding="utf-8")
    strange = tmp_path / "e.jsonl"
    strange.write_text('{"iteration": 1, "episodes": [{"seed": 3}]}\n', encoding="utf-8")
    nowhere = tmp_path / "f.json"
    nowhere.write_text('{"records": [{"predator_position": [0, NaN], "predator_velocity": [1, 2]}, 3]}')
    for source, word in (
        (strange, "holds no worst episodes"),
        (nowhere, "holds no step-one records"),
        (empty, "holds no"),
        (broken, "not JSON"),
        (number, "not a probe"),
        (tmp_path / "d.jsonl", "exist"),
    ):
        with pytest.raises(UserError, match=word):
            make_starts(StartsConfig(source=source, output_dir=tmp_path))


def test_a_step_one_record_is_taken_back_to_its_start() -> None:
    start = [0.3, -0.2, 1.1, -0.7]
    after = [float(v) for v in ballistic_step(Predator(*(torch.tensor(v, dtype=torch.float64) for v in start)))]
    (state,) = states_of_records([step_one_record(after[:2], after[2:])] * 3)  # three fish, one predator
    assert [*state["position"], *state["velocity"]] == pytest.approx(start)
    assert states_of_records([step_one_record([10.0, 0.0], [-1.0, 0.0])]) == []  # touched the wall


# --- export and check ---------------------------------------------------------------------------------------


def test_worst_seed_export_is_valid_input(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    records = [step_one_record([0.1, 0.2], [-0.78, 1.74])] * 4
    records += [step_one_record(rng.normal(size=2).tolist(), rng.normal(size=2).tolist()) for _ in range(30)]
    export = worst_seed_export(records, "a_run", "now")
    assert set(export) >= {"generated_at", "run_name", "records", "summary"}
    assert export["summary"]["total_events"] == 34 and len(export["summary"]["clusters"]) == 6
    top = export["summary"]["clusters"][0]
    assert top["sample"] == {
        "iteration": 16, "angle_deg": pytest.approx(114.15, abs=0.01), "speed": pytest.approx(1.9068, abs=1e-4),
        "predator_velocity": [-0.78, 1.74], "fish_idx": 3,
    }  # fmt: skip
    path = tmp_path / "step_one_worst_seeds.json"
    path.write_text(json.dumps(export, allow_nan=False), encoding="utf-8")
    ours = load_starts(path)
    assert len(ours) == 31 and np.isfinite(ours.position).all()
    del export["states"]  # what an older program sees
    path.write_text(json.dumps(export), encoding="utf-8")
    assert load_starts(path).velocity.tolist() == [
        c["sample"]["predator_velocity"] for c in export["summary"]["clusters"]
    ]


def test_export_can_be_made_a_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step_one_worst_seeds.json"
    records = [step_one_record([0.1, 0.2], [-0.78, 1.74]), step_one_record([0.5, 0.2], [1.0, 0.0])]
    source.write_text(json.dumps(worst_seed_export(records, "r", "now")), encoding="utf-8")
    make_starts(StartsConfig(source=source, output_dir=tmp_path / "out"))
    stages, _ = load_stages(parse_stage_spec(printed_spec(capsys.readouterr().out)))
    assert len(stages[0].starts) == 2


def test_export_gathers_the_records_of_all_probes(tmp_path: Path) -> None:
    def probed(iteration: int) -> dict[str, Any]:
        record = {"fish_idx": 1, "predator_position": [0.1 * iteration, 0.0], "predator_velocity": [1.0, 0.0]}
        return {"iteration": iteration, "step_one_deaths": [record]}

    path = export_worst_seeds([probed(16), probed(32)], tmp_path / "step_one_worst_seeds.json", "a_run")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert [r["iteration"] for r in data["records"]] == [16, 32] and data["run_name"] == "a_run"
    assert len(load_starts(path)) == 2


def test_check_prints_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_starts(StartsConfig(check=Path("tail_seed_mix_v32_stage2.json")))
    said = capsys.readouterr().out
    assert "5 entries, 5 distinct" in said and "60- 90       4" in said
    with pytest.raises(UserError, match="does not exist"):
        make_starts(StartsConfig(check=tmp_path / "none.json"))
