"""What ``pagemill bench`` measures on a user's own machine: functions that return rows."""
