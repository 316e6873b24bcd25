"""What the instructor decided, who takes the course, and its gradebook."""
