"""What will be done: a scenario becomes commands, as data; nothing here starts a process."""
