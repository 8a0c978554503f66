"""Who gets what from whom."""
