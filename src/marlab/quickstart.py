"""`marlab quickstart`: the whole way of a real experiment in a few minutes, ending with a note and a report."""

from __future__ import annotations

from pathlib import Path

from marlab.fish.settings import FishTrainConfig
from marlab.fish.train import train
from marlab.lab.config import from_dict, load_preset
from marlab.lab.errors import UserError
from marlab.lab.report.intervals import measured
from marlab.lab.report.note import write_note
from marlab.lab.report.page import write_page
from marlab.lab.run import RunOptions
from marlab.lab.runs import read_run

RUN = Path("runs/fish/quickstart")


def main(argv: list[str]) -> int:
    """Train a shoal, evaluate it beside scripted policies, and report; a second call continues or shows the result."""
    if argv and argv[0] in ("-h", "--help"):
        print("usage: marlab quickstart\n\nTrain a shoal, evaluate it on held-out arenas, write a note and a report.")
        return 0
    if argv:
        raise UserError("marlab quickstart takes no words; see `marlab fish train --help` for a training of your own.")
    preset = load_preset("quickstart", Path(__file__).parent / "fish" / "presets")
    config = from_dict(FishTrainConfig, preset.values, "preset quickstart")
    known = read_run(RUN).status if (RUN / "run.json").exists() else None
    if known != "finished":
        print("A shoal of 25 fish learns to escape a predator: 16 iterations, two to four minutes on two cores.")
        options = RunOptions(output_dir=RUN, resume=known is not None, goal="see the whole loop once")
        run = train(config, options, preset=preset, command=["marlab", "quickstart"])
        if read_run(RUN).status != "finished":
            print(f"Stopped; `marlab quickstart` goes on from {RUN}.")
            return run.exit_code
    write_note(RUN)
    print_results()
    try:
        print(f"report     {write_page(RUN)}")
    except UserError as error:
        print(f"report     not made: {error}")
    print("try next   marlab fish watch sidestep    marlab fish train --preset best    marlab runs")
    return 0


def print_results() -> None:
    """The headline numbers, the note and the film."""
    info = read_run(RUN)
    model = "best" if any(name.startswith("best model: ") for name in info.results) else "final"
    print(f"\nHeld-out arenas, {model} model:")
    for name, stored in info.results.items():
        if name.startswith(f"{model} model: "):
            result = measured(stored)
            interval = "" if result.low is None else f"  [{result.low:+.4f}, {result.high:+.4f}]"
            print(f"  {name.partition(': ')[2]:<24}{result.value:>8.4f}{interval}  {result.unit}")
    print(f"\nnote       {RUN / 'note.md'}")
    for film in sorted(RUN.glob("eval/*/*.mp4"))[:1]:
        print(f"film       {film}")
