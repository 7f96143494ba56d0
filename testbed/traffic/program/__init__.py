"""A command flow: programs of the user's, with folders of their own."""
