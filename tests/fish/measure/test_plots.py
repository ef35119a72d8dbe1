from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from marlab.fish.measure import plots

REFERENCES = {"random": 0.745, "side-step": 0.982, "ceiling": 0.984}
TRAINING = plots.TrainingReferences({"random": 0.9, "side-step": 0.99, "ceiling": 0.992}, 192)


def rows(count: int = 6, known: bool = True) -> list[dict[str, Any]]:
    """The first iterations of a run: nothing is finished before iteration 3, the phase changes at 4."""
    return [
        {
            "iteration": i,
            "phase": 1 if i < 4 else 2,
            "num_fish": 15 if i < 4 else 20,
            "survival_rate": 0.7 + 0.02 * i if known and i >= 3 else None,
            "avg_reward": 200.0 + i if known and i >= 3 else None,
            "episode_length": 500.0 if known and i >= 3 else None,
            "first_death_step": 30.0 + i if known and i >= 3 else None,
            "first_death_p10": 1.0 if known and i >= 3 else None,
            "density_penalty_coef": 0.0 if i < 4 else 0.02,
            "entropy_coef": 0.02,
            "prewarm_override_ratio_256": 0.5,
            "tail_queue_remaining_ratio": 1.0 - 0.05 * i,
            "tail_stage_label": "early" if i < 3 else "late",
        }
        for i in range(1, count + 1)
    ]


def probe(iteration: int) -> dict[str, Any]:
    return {
        "iteration": iteration,
        "summary": {"avg_final_survival_rate": 0.8, "min_final_survival_rate": 0.6},
        "death_stats": {"early_death_fraction_100": 0.05},
        "step_one_death_ratio": 0.017,
        "doomed_ratio": None,
        "penalty_gate": {"event": "advance", "stage": 1},
        "step_one_deaths": [{"predator_velocity": [-0.78, 1.74]}],
    }


def darkness(path: Path) -> float:
    """Share of pixels that are not white: a figure with data has more ink."""
    return float((np.asarray(Image.open(path).convert("L")) < 250).mean())


def test_a_run_gets_all_its_figures(tmp_path: Path) -> None:
    made = plots.draw_run(rows(), [probe(3), probe(6)], tmp_path / "r", REFERENCES, TRAINING)
    names = {p.name for p in made}
    assert names == {
        "r_survival.png", "r_first_death.png", "r_penalty_vs_first_death.png", "r_penalty_vs_entropy.png",
        "r_training_curve.png", "r_curve.gif", "r_hard_starts.png", "r_multi_eval_timeline.png",
        "r_step_one_heading_polar.png",
    }  # fmt: skip
    assert all(p.is_file() for p in made)
    with Image.open(tmp_path / "r" / "figures" / "r_survival.png") as image:
        assert image.size == (1500, 660)


def test_gif_grows_frame_by_frame(tmp_path: Path) -> None:
    path = plots.save_curve_gif(rows(6), tmp_path / "c.gif", TRAINING, frames=3)
    with Image.open(path) as gif:
        assert gif.n_frames == 3
        blue = []
        for frame in range(3):
            gif.seek(frame)
            red, _, colour = np.asarray(gif.convert("RGB"), dtype=int).transpose(2, 0, 1)
            blue.append(int((colour - red > 100).sum()))  # pixels of the curve
    assert blue[0] == 0 < blue[1] < blue[2]  # no episode has ended in the first iteration


def test_references_and_data_leave_ink(tmp_path: Path) -> None:
    full = plots.plot_survival(rows(), tmp_path / "a.png", TRAINING)
    plain = plots.plot_survival(rows(), tmp_path / "b.png", plots.TrainingReferences({}, 192))
    empty = plots.plot_survival(rows(known=False), tmp_path / "c.png", plots.TrainingReferences({}, 192))
    assert darkness(full) > darkness(plain) and not empty.exists()  # without data there is no figure


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = (plots.plot_first_death(rows(), tmp_path / f"{i}.png").read_bytes() for i in (1, 2))
    assert one == two


@pytest.mark.parametrize("count", [1, 2])
def test_a_run_that_has_just_begun_can_be_drawn(tmp_path: Path, count: int) -> None:
    made = plots.draw_run(rows(count), [], tmp_path / "r", REFERENCES, TRAINING)
    assert len(made) == 5 and not any("penalty" in p.name for p in made)  # there is none yet


def test_histogram_and_polar_without_deaths(tmp_path: Path) -> None:
    plots.plot_death_histogram(np.full((2, 5), -1), tmp_path / "h.png")
    plots.plot_step_one_by_type({"ordinary": {"count": 0, "fish": 0}}, tmp_path / "t.png")
    assert len(list(tmp_path.glob("*.png"))) == 2
    assert not plots.plot_step_one_polar([], tmp_path / "p.png").exists()


def test_death_histogram_draws_taller_bars_for_more_deaths(tmp_path: Path) -> None:
    few, many = np.full((10, 10), -1), np.full((10, 10), -1)
    few[:, 0] = np.arange(1, 500, 50)
    many[:, :5] = np.linspace(1, 500, 50).astype(int).reshape(10, 5)
    few[0, :9] = many[0, :9] = 1  # the same tallest bar on both
    sparse = plots.plot_death_histogram(few, tmp_path / "a.png")
    dense = plots.plot_death_histogram(many, tmp_path / "b.png")
    assert darkness(dense) > darkness(sparse)


def test_columns_show_gaps() -> None:
    values = plots.column([{"iteration": 1, "x": 2}, {"iteration": 2, "x": None}, {"iteration": 3}], "x")
    assert values[0] == 2 and np.isnan(values[1:]).all()
