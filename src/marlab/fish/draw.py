"""How runs of the fish world are drawn again (`marlab draw`)."""

DRAWERS = {
    "marlab.fish.training.config:FishTrainConfig": "marlab.fish.training.ending:draw",
    "marlab.fish.measure.config:EvalConfig": "marlab.fish.training.evaluate:draw",
    "marlab.fish.measure.config:SuiteConfig": "marlab.fish.training.suite:draw_again",
    "marlab.fish.measure.config:SchoolConfig": "marlab.fish.training.school:draw_again",
    "marlab.fish.training.selfplay_config:SelfPlayConfig": "marlab.fish.training.selfplay:draw_again",
}
