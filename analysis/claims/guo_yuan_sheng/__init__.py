"""The claims of Guo, Yuan and Sheng."""
