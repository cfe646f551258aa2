"""The scheduler: `step(state, event)` and the modules behind it."""
