"""The router-bottleneck experiments: rates, queues and their figures."""
