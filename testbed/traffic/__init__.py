"""The programs that make traffic: iperf3, background sessions, video."""
