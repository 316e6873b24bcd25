"""Attend: from three loops to a kernel that never keeps what all queries think of all keys."""
