"""The claims of Joshi and Hattikar."""
