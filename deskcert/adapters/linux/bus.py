"""One connection to the accessibility bus: bounded, with deadlines, and with answers that are known, absent or unknown.

- At most 64 calls are in flight: dbus-fast loses its connection when its socket's buffer is full.
- A call that is not answered in time is *unknown*. `UnknownObject` and the like are *absent*, on a read: on an action
  the same error may mean that the control is disabled (Qt), so a caller that acts reads the state first.
- A process that did not answer once is not asked again under the same deadline: one hang costs one time-out.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from deskcert.contract.evidence import ABSENT, Field, Known, Unknown
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import DetailKind

__all__ = ["IN_FLIGHT", "AccessBus", "Answered", "Deadline", "NotAnswered", "ObjectRef", "ProcessGone", "Refused"]

IN_FLIGHT: Final = 64
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_DBUS: Final = "org.freedesktop.DBus"
_CONNECT_S: Final = 5.0
_CLOSE_S: Final = 1.0
_NEVER_THERE: Final = frozenset(
    f"org.freedesktop.DBus.Error.{name}"
    for name in ("UnknownObject", "UnknownMethod", "UnknownInterface", "UnknownProperty", "InvalidArgs")
)
_NO_PROCESS: Final = frozenset(
    f"org.freedesktop.DBus.Error.{name}" for name in ("ServiceUnknown", "NameHasNoOwner", "Disconnected")
)
_NO_REPLY: Final = "org.freedesktop.DBus.Error.NoReply"


class ObjectRef(NamedTuple):
    """An accessible object: the unique bus name of its process, and its path there."""

    bus: str
    path: str


class ProcessGone(Exception):
    """The bus knows no such name: the process has ended."""


@dataclass(frozen=True, slots=True)
class Answered:
    body: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The application answered with an error: `name` is D-Bus's, `text` the application's."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class NotAnswered:
    why: str
    sent: bool = True
    """False: the call never left this process."""


class Deadline:
    """A point in time, and the processes that have let a call time out before it."""

    def __init__(self, budget_ms: float) -> None:
        self.at = time.monotonic() + budget_ms / 1000
        self.hung: set[str] = set()

    def left_s(self) -> float:
        return self.at - time.monotonic()


class AccessBus:
    """Make one with `connect`."""

    def __init__(self, connection: Any, session: Any, in_flight: int = IN_FLIGHT) -> None:
        self._connection, self._session = connection, session
        self._slots = asyncio.Semaphore(in_flight)

    @classmethod
    async def connect(cls, session_address: str | None, *, in_flight: int = IN_FLIGHT) -> AccessBus:
        """`in_flight` 1 asks one thing after the other: for comparison only.

        Raises `AdapterError` where there is no session bus or no accessibility on it.
        """
        from dbus_fast import BusType, Message
        from dbus_fast.aio import MessageBus

        session: Any = None
        try:
            async with asyncio.timeout(_CONNECT_S):
                session = await MessageBus(bus_address=session_address, bus_type=BusType.SESSION).connect()
                reply = await session.call(
                    Message(
                        destination="org.a11y.Bus",
                        path="/org/a11y/bus",
                        interface="org.a11y.Bus",
                        member="GetAddress",
                    )
                )
                if reply is None or reply.message_type.name == "ERROR":
                    raise _unavailable(f"org.a11y.Bus answered {reply.error_name if reply else 'nothing'}")
                connection = await MessageBus(bus_address=str(reply.body[0])).connect()
                made = cls(connection, session, in_flight)
                # GTK 3 fills its cache, and Qt its tree, only once somebody listens.
                await made._register()
                return made
        except AdapterError:
            await _drop(session)
            raise
        except Exception as error:  # dbus-fast raises errors of sockets, of authentication and its own
            await _drop(session)
            raise _unavailable(f"{type(error).__name__}: {error}") from error

    async def _register(self) -> None:
        registry = ObjectRef("org.a11y.atspi.Registry", "/org/a11y/atspi/registry")
        for event in ("object:state-changed", "window"):
            interface, deadline = "org.a11y.atspi.Registry", Deadline(2_000)
            await self.send(registry, interface, "RegisterEvent", deadline, signature="s", body=[event])

    @property
    def lost(self) -> bool:
        return not self._connection.connected

    async def send(
        self,
        ref: ObjectRef,
        interface: str,
        member: str,
        deadline: Deadline,
        *,
        signature: str = "",
        body: Sequence[Any] = (),
    ) -> Answered | Refused | NotAnswered:
        """One call, once. Raises `ProcessGone`."""
        from dbus_fast import Message

        if ref.bus in deadline.hung:
            return NotAnswered("the application did not answer in time", sent=False)
        if self.lost:
            return NotAnswered("the accessibility bus is gone", sent=False)
        message = Message(
            destination=ref.bus,
            path=ref.path,
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
        )
        out = False
        try:
            async with asyncio.timeout(max(0.0, deadline.left_s())), self._slots:
                out = True
                reply = await self._connection.call(message)
        except TimeoutError:
            if not out:
                return NotAnswered("the budget ended before the call could be made", sent=False)
            deadline.hung.add(ref.bus)
            return NotAnswered("the application did not answer in time")
        except (OSError, EOFError) as error:
            return NotAnswered(f"the accessibility bus is gone: {error}", sent=out)
        if reply.message_type.name != "ERROR":
            return Answered(tuple(reply.body))
        return self._refused(ref, reply, deadline)

    def _refused(self, ref: ObjectRef, reply: Any, deadline: Deadline) -> Refused | NotAnswered:
        text = str(reply.body[0]) if reply.body else ""
        if reply.error_name in _NO_PROCESS:
            raise ProcessGone(text or str(reply.error_name))
        if reply.error_name == _NO_REPLY:
            # Either its own time-out, or the process ended before it answered: the next call tells.
            deadline.hung.add(ref.bus)
            return NotAnswered(text or "no reply")
        return Refused(str(reply.error_name), text)

    async def ask(
        self,
        ref: ObjectRef,
        interface: str,
        member: str,
        deadline: Deadline,
        *,
        signature: str = "",
        body: Sequence[Any] = (),
    ) -> Field[Any]:
        """The first value of the answer. Raises `ProcessGone`."""
        match await self.send(ref, interface, member, deadline, signature=signature, body=body):
            case Answered(found):
                return Known(found[0]) if found else ABSENT
            case Refused(name, text):
                return ABSENT if name in _NEVER_THERE else Unknown(f"{name}: {text}"[:200])
            case NotAnswered(why):
                return Unknown(why)

    async def get(self, ref: ObjectRef, interface: str, name: str, deadline: Deadline) -> Field[Any]:
        """A property. Raises `ProcessGone`."""
        found = await self.ask(ref, _PROPERTIES, "Get", deadline, signature="ss", body=[interface, name])
        return Known(found.value.value) if isinstance(found, Known) else found

    async def get_all(self, ref: ObjectRef, interface: str, deadline: Deadline) -> Field[dict[str, Any]]:
        """Every property at once, where the toolkit can (Qt refuses). Raises `ProcessGone`."""
        found = await self.ask(ref, _PROPERTIES, "GetAll", deadline, signature="s", body=[interface])
        return Known({k: v.value for k, v in found.value.items()}) if isinstance(found, Known) else found

    async def process_id(self, bus: str, deadline: Deadline) -> Field[int]:
        """Of the process behind a unique name; the bus knows, the process is not asked. Raises `ProcessGone`."""
        daemon = ObjectRef(_DBUS, "/org/freedesktop/DBus")
        return await self.ask(daemon, _DBUS, "GetConnectionUnixProcessID", deadline, signature="s", body=[bus])

    async def close(self) -> None:
        await _drop(self._connection)
        await _drop(self._session)


async def _drop(connection: Any) -> None:
    """Its reader ends with an error of its own, which nobody else would take."""
    if connection is not None:
        with contextlib.suppress(Exception):
            connection.disconnect()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(connection.wait_for_disconnect(), _CLOSE_S)


def _unavailable(why: str) -> AdapterError:
    return AdapterError(
        f"there is no accessibility bus ({why}); start the application inside a desktop session with at-spi2-core, "
        "or under dbus-run-session",
        kind=DetailKind.COMPONENT_LOST,
    )
