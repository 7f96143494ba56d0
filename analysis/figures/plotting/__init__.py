"""Building blocks of figures and tables: style, layout, error bars, cases, saving."""
