"""Turns run directories into comparisons with honest statistics; imports neither torch nor gymnasium."""
