"""Does the vector market rank sellers as the simulator does? The same seats in both, seller by seller."""
