"""One durable job for each submission, on one machine or a cluster."""
