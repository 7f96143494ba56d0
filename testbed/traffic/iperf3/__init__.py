"""iperf3 flows, and the libraries that are preloaded into iperf3."""
