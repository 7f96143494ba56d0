"""What figures and tables are made of: style, layout, error bars, cases, saving."""
