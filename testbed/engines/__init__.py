"""Engines that run trials: the guest in virtual time, the host as root in real time."""
