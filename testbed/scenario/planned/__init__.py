"""What follows from a scenario before it runs: a flow's way through the network, its transfers."""
