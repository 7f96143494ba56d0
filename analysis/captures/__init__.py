"""Packets: the compiled core, its bindings, capture files, tshark and Wireshark beside it."""
