"""From a checked plan to the execution plan that the scheduler works on."""
