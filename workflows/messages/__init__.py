"""What crosses the wire: activity contracts, requests, results, views and updates."""
