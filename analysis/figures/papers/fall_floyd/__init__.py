"""Fall, Floyd: one to four losses in a window, and what each variant does."""
