"""How a quickstart is drawn again (`marlab draw`)."""

from __future__ import annotations

from marlab.lab.errors import UserError
from marlab.lab.runs.run import Run
from marlab.quickstart.command import QuickstartConfig
from marlab.quickstart.report import read_story, verdict, write_report

DRAWERS = {"marlab.quickstart.command:QuickstartConfig": "marlab.quickstart.draw:draw"}


def draw(run: Run, config: QuickstartConfig, quiet: bool) -> None:
    """The report page and the results, from the stages beside the run."""
    try:
        story = read_story(run.path, config.play)
    except UserError as error:
        raise UserError(f"The stages of {run.path} are not all there: {error}") from None
    run.add_results(story.results())
    run.set_verdict(*verdict(story))
    write_report(story)
