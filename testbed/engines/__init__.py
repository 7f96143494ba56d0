"""Where a trial runs: the guest in virtual time, or the host as root in real time."""
