"""The guest: booting it, its confinement and its kernels, and how a trial begins inside."""
