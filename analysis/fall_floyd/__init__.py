"""The test of Fall and Floyd: what a variant does when exact segments of a window are lost."""
