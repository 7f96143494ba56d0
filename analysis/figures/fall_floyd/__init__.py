"""One to four losses in a window: what each variant does, drawn and told."""
