"""Runs code nobody vouches for: no network, no secrets, one private folder, bounded in every way, gone afterwards."""
