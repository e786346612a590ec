"""What `approvals_faults.py` is made of: programs that keep a log of the truth beside the store, the faults, and the comparison of both."""
