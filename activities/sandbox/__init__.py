"""Runs untrusted code: no network, no secrets, one private folder, every resource bounded, nothing left afterwards."""
