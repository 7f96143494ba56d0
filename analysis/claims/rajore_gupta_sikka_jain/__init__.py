"""The claims of Rajore, Gupta, Sikka and Jain."""
