"""The claims of Parvez, Mahanti and Williamson."""
