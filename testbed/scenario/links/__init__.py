"""Links that change: schedules of settings, and traces of delivery opportunities."""
