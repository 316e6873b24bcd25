"""Taking in: from a learning platform's download or a folder to one notebook for each student and lesson."""
