"""A comparison in words: the table, the settings, and sentences that say what is noise."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.compare.compare import compare_groups
from marlab.lab.compare.groups import open_groups
from marlab.lab.compare.show import page, rows_of, sentences, text
from tests.lab.compare.cases import make_training, two_groups


def told(root: Path, runs: list[str], **how: str) -> str:
    return text(compare_groups(open_groups(runs, root), **how))  # type: ignore[arg-type]


def test_a_difference_that_is_more_than_noise(tmp_path: Path) -> None:
    said = told(tmp_path, two_groups(tmp_path, [1.0, 2.0, 3.0], [2.1, 3.0, 3.9]))
    assert "rate=0.3 is better than rate=0.1: score 3 against 2, +1 [+0.752, +1.25]." in said
    assert "over the 3 seeds that both were trained with." in said
    lines = said.splitlines()
    assert lines[0].split() == "group trainings score 95 % minus rate=0.1 95 % together verdict".split()
    assert lines[2].split()[-1] == "better" and len({len(line.rstrip()) for line in lines[1:2]}) == 1


def test_noise_is_called_noise_and_says_what_would_be_needed(tmp_path: Path) -> None:
    said = told(tmp_path, two_groups(tmp_path, [1.0, 2.0, 3.0], [1.2, 1.6, 3.5]))
    assert "rate=0.3 and rate=0.1 are within noise" in said
    assert "would tell one of this size from noise" in said


def test_one_value_each_says_nothing(tmp_path: Path) -> None:
    said = told(tmp_path, two_groups(tmp_path, [1.0], [2.0]))
    assert "cannot be told apart yet" in said and "Next: train the same seeds" in said and "cannot tell" in said


def test_cases_of_one_training_are_told_as_such(tmp_path: Path) -> None:
    runs = [
        make_training(tmp_path, name, 0.0, rate=rate, cases={f"arena {i}": i + rate for i in range(6)})
        for name, rate in (("x", 0.25), ("y", 0.5))
    ]
    said = told(tmp_path, runs)
    assert "better than" in said and "over 6 cases that one training of each met" in said


def test_single_trainings_of_different_seeds_cannot_be_told_apart(tmp_path: Path) -> None:
    cases = {f"arena {i}": float(i) for i in range(6)}
    runs = [
        make_training(tmp_path, name, rate, seed, {case: v + rate for case, v in cases.items()}, rate=rate)
        for seed, (name, rate) in enumerate([("x", 0.25), ("y", 0.5)])
    ]
    said = told(tmp_path, runs)
    assert "cannot be told apart yet" in said and "cannot tell" in said and "better" not in said
    assert [line.split() for line in said.splitlines() if line.startswith("seed")] == [["seed", "0", "1"]]
    assert "All 2 runs have the same settings but for their seeds" in told(
        tmp_path, [make_training(tmp_path, f"z{seed}", 1.0, seed) for seed in (0, 1)]
    )


def test_the_best_is_also_compared_with_the_second(tmp_path: Path) -> None:
    runs = two_groups(tmp_path, [1.0, 2.0, 3.0], [2.1, 3.0, 3.9])
    runs += [make_training(tmp_path, f"c{i}", 2.05 + i, i, rate=0.7) for i in range(3)]
    found = compare_groups(open_groups(runs, tmp_path))
    said = sentences(found)
    assert said[0].startswith("rate=0.7 is better than rate=0.1")
    assert said[1].startswith("rate=0.7 and rate=0.3 are within noise") and len(said) == 3


def test_the_reference_may_be_the_best(tmp_path: Path) -> None:
    said = told(tmp_path, two_groups(tmp_path, [2.1, 3.0, 3.9], [1.0, 2.0, 3.0]))
    assert "rate=0.3 is worse than rate=0.1" in said


def test_without_a_direction_nobody_is_better(tmp_path: Path) -> None:
    said = told(tmp_path, two_groups(tmp_path, [1.0, 2.0, 3.0], [2.1, 3.0, 3.9]), metric="speed")
    assert "rate=0.3 is above rate=0.1" in said and "--better" in said


def test_what_is_not_finished_is_named_and_one_group_is_a_table(tmp_path: Path) -> None:
    runs = two_groups(tmp_path, [1.0, 2.0], [])
    record = Path(runs[0]) / "run.json"
    record.write_text(record.read_text().replace('"status": "finished"', '"status": "failed"', 1))
    found = compare_groups(open_groups(runs, tmp_path))
    assert "toy/a0 is failed" in text(found) and len(rows_of(found)[0]) == 4


def test_the_page_has_everything(tmp_path: Path) -> None:
    made = page(compare_groups(open_groups(two_groups(tmp_path, [1.0, 2.0], [2.0, 3.1]), tmp_path)), "comparison.png")
    for part in (
        "# Comparison",
        "| group |",
        "](comparison.png)",
        "## Settings that differ",
        "| rate | 0.1 | 0.3 |",
        "speed",
    ):
        assert part in made
