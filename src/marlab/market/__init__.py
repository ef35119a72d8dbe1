"""The market: agents of the SCML Standard league, from recorded expert games to tournaments."""
