"""The activities of a run itself: prepare it, plan it, check its plans, conclude it."""
