"""The figure of the router-bottleneck experiment."""
