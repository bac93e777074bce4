"""Measurements, printed as ratios against a base line taken in the same run. None of them is a test."""
