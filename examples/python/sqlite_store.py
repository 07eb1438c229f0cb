"""Sessions that several processes share, in a file of SQLite: a store, a log and a bus of your own.

    python sqlite_store.py 8000 &
    python sqlite_store.py 8001 &

Both processes serve the same sessions, so a load balancer may send each request to either of them. SQLite keeps the
example short. It has no notifications, so the bus polls for new messages; with PostgreSQL, it would use `LISTEN`.
`mcpline.sharing` describes the methods.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from mcpline import Server, Sharing
from mcpline.sharing import LoggedEvents

# In seconds: how often the bus polls; how long messages and events are kept; how long a removed session stays so.
POLLING, KEPT, REMOVED = 0.02, 3_600, 300
MAX_LIFETIME = 10 * 365 * 24 * 3_600
SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, session BLOB, expires REAL);  -- NULL: removed
CREATE INDEX IF NOT EXISTS expiries ON sessions (expires);
CREATE TABLE IF NOT EXISTS events (stream TEXT, number INTEGER, event BLOB, stored REAL, PRIMARY KEY (stream, number));
CREATE TABLE IF NOT EXISTS ended (stream TEXT PRIMARY KEY, stored REAL);
CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY AUTOINCREMENT, message BLOB, stored REAL);
"""


class SqliteStore:
    """A `SessionStore`, an `EventLog` and a `Bus`. Its methods are plain functions, so they run on threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._transaction() as database:
            database.executescript(SCHEMA)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Make one step of several statements. Calls run on several threads, so each has a connection of its own."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=1, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("BEGIN IMMEDIATE")
            yield database
            if database.in_transaction:
                database.execute("COMMIT")

    def save(self, id: str, session: bytes, replaces: bytes, lifetime: float | None) -> bytes | None:
        now = time.time()
        with self._transaction() as database:
            database.execute("DELETE FROM sessions WHERE expires < ?", (now,))
            stored = database.execute("SELECT session FROM sessions WHERE id = ?", (id,)).fetchone()
            if stored == (None,):
                return None
            if stored and stored[0] not in (session, replaces):
                conflict: bytes = stored[0]
                return conflict
            expires = now + (MAX_LIFETIME if lifetime is None else lifetime)
            database.execute("REPLACE INTO sessions VALUES (?, ?, ?)", (id, session, expires))
        return None

    def load(self, id: str) -> bytes | None:
        with self._transaction() as database:
            query = "SELECT session FROM sessions WHERE id = ? AND expires >= ?"
            stored = database.execute(query, (id, time.time())).fetchone()
        return stored[0] if stored else None

    def remove(self, id: str) -> None:
        with self._transaction() as database:
            database.execute("REPLACE INTO sessions VALUES (?, NULL, ?)", (id, time.time() + REMOVED))
            for table in ("events", "ended"):
                database.execute(f"DELETE FROM {table} WHERE stream GLOB ?", (f"{id}/*",))

    def append(self, stream: str, number: int, events: Sequence[bytes]) -> None:
        now = time.time()
        with self._transaction() as database:
            database.execute("DELETE FROM events WHERE stored < ?", (now - KEPT,))
            database.execute("DELETE FROM ended WHERE stored < ?", (now - KEPT,))
            (last,) = database.execute("SELECT max(number) FROM events WHERE stream = ?", (stream,)).fetchone()
            if last is not None and last != number - 1:
                database.execute("DELETE FROM events WHERE stream = ?", (stream,))
            rows = [(stream, number + index, event, now) for index, event in enumerate(events)]
            database.executemany("REPLACE INTO events VALUES (?, ?, ?, ?)", rows)

    def end(self, stream: str, last: int) -> None:
        with self._transaction() as database:
            (stored,) = database.execute("SELECT max(number) FROM events WHERE stream = ?", (stream,)).fetchone()
            if stored == last:
                database.execute("REPLACE INTO ended VALUES (?, ?)", (stream, time.time()))
            else:
                # The last events were lost: what is left must not be taken for the whole stream.
                database.execute("DELETE FROM events WHERE stream = ?", (stream,))

    def read(self, stream: str, after: int) -> LoggedEvents | None:
        with self._transaction() as database:
            range_query = "SELECT min(number), max(number) FROM events WHERE stream = ?"
            first, last = database.execute(range_query, (stream,)).fetchone()
            if first is None or not first - 1 <= after <= last:
                return None
            query = "SELECT event FROM events WHERE stream = ? AND number > ? ORDER BY number LIMIT 256"
            events = [event for (event,) in database.execute(query, (stream, after))]
            has_more = after + len(events) < last
            ended = database.execute("SELECT 1 FROM ended WHERE stream = ?", (stream,)).fetchone() is not None
        return LoggedEvents(events, ended=ended and not has_more, has_more=has_more)

    def publish(self, message: bytes) -> None:
        now = time.time()
        with self._transaction() as database:
            database.execute("DELETE FROM messages WHERE stored < ?", (now - KEPT,))
            database.execute("INSERT INTO messages (message, stored) VALUES (?, ?)", (message, now))

    def subscribe(self, receive: Callable[[bytes], None]) -> Callable[[], None]:
        with self._transaction() as database:
            (last,) = database.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()
        ended = threading.Event()

        def poll() -> None:
            seen = last
            query = "SELECT number, message FROM messages WHERE number > ? ORDER BY number"
            while not ended.wait(POLLING):
                with contextlib.suppress(sqlite3.OperationalError), self._transaction() as database:
                    for number, message in database.execute(query, (seen,)).fetchall():
                        seen = number
                        receive(message)

        thread = threading.Thread(target=poll, name="sqlite-bus", daemon=True)
        thread.start()

        def end() -> None:
            ended.set()
            thread.join()

        return end


def main() -> None:
    store = SqliteStore("sessions.sqlite")
    server = Server("counter", "1.0.0", sharing=Sharing(sessions=store, events=store, bus=store))

    @server.tool
    def greet(name: str) -> str:
        """Greet a person."""
        return f"Hello, {name}!"

    server.run("http", port=int(sys.argv[1]))


if __name__ == "__main__":
    main()
