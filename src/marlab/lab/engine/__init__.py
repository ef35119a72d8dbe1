"""Many independent tasks, each in a killable child: on this machine, on Dask or on Ray."""
