"""The report: one HTML file that opens from disk, asks nothing of any network, and shows runs to the last record."""
