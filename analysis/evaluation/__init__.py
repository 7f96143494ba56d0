"""What the standard evaluations measure, and how a subject stands beside others."""
