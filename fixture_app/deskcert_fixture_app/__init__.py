"""Larkfield, the application under test: a back office with a real server, a real database and bad manners on request.

`python -m deskcert_fixture_app --port 0 --db FILE --effects FILE` serves it; see `server` for the options.
"""
