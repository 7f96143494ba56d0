"""The laboratory: scenarios, plans, engines, trials and what they leave on disk."""
