"""Every figure: style, panels shared by experiments, and the catalogue of who gets which."""
