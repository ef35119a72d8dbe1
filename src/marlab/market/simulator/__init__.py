"""Everything that touches the SCML simulator: worlds, experts, recorder, settlement, bounds."""
