"""Larkfield's back office as a desktop application (Qt), with the same database, effects and control as on the web."""
