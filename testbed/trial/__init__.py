"""Running a trial: build and verify the network, run the flows, capture, sample, tear down."""
