"""Background sessions: a client and a server in C, and the code that runs and counts them."""
