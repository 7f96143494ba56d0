"""The verdict on what a whole program set up: networks, queues, and what measured them."""
