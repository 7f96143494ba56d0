"""Kapre, Saxena and Joshi, Hattikar: two papers on one network of six nodes."""
