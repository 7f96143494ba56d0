"""The verdict on a trial: checks, their tolerances, and the worst of them."""
