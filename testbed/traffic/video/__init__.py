"""A segmented video: what is served, the servers, and a player, over TCP and over QUIC."""
