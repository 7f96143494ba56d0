"""How fast the laboratory is, and what it is compared with."""
