"""How runs of the market are drawn again (`marlab draw`)."""

DRAWERS = {
    "marlab.market.collect.plan:MarketCollectConfig": "marlab.market.collect.collection:draw_again",
    "marlab.market.samples.command:SamplesConfig": "marlab.market.samples.make:draw_again",
    "marlab.market.learn.command:MarketTrainConfig": "marlab.market.learn.phases:draw_again",
    "marlab.market.clones.settings:CloneConfig": "marlab.market.clones.clone:draw_again",
    "marlab.market.distill.settings:DistillConfig": "marlab.market.distill.distill:draw_again",
    "marlab.market.habits.settings:HabitsConfig": "marlab.market.habits.work:draw_again",
    "marlab.market.online.settings:OnlineConfig": "marlab.market.online.work:draw_again",
    "marlab.market.arena.plan:PlayConfig": "marlab.market.arena.play:draw_again",
    "marlab.market.fidelity.plan:FidelityConfig": "marlab.market.fidelity.work:draw_again",
}
