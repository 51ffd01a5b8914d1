"""From a graph to programs: shapes, plan-time constants, memory and the order of work."""
