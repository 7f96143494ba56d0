"""Rajore, Gupta, Sikka, Jain: a video at home over TCP and QUIC."""
