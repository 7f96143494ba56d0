"""What can be asked: frozen values with their tables of variants, profiles, queues and losses."""
