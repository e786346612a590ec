"""What `faults.py` is made of: agents that keep a log beside the recording, the faults, and the comparison of the log with the store."""
