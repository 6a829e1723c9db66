"""What a reviewer asks of runs: timeline, one record, differences, questions in SQL, numbers. Needs no browser."""
