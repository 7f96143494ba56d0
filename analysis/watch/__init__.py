"""Each packet of a trial on its way: when it was where, what became of it, and why it was sent."""
