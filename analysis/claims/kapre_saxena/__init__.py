"""The claims of Kapre and Saxena."""
