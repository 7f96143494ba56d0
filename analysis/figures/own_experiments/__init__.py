"""The figures of the experiments that follow no paper."""
