import sqlite3


def closed(app, ticket):
    print("this goes nowhere")
    rows = sqlite3.connect(f"file:{app.folder}/{'desk.sqlite'}?mode=ro", uri=True).execute(
        "select count(*) from tickets where id = ? and state = 'closed'", (ticket,)
    )
    return rows.fetchone()[0]


def opened(app):
    assert app.database.endswith("desk.sqlite")
