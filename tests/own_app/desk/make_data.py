import sqlite3
import sys

with sqlite3.connect(sys.argv[1]) as database:
    database.execute("create table tickets (id integer, state text)")
    database.executemany("insert into tickets values (?, 'open')", [(1,), (2,)])
