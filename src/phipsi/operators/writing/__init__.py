"""Expressions in writing: read from text, and explained."""
