"""The pipeline of the commands on the desktop, which have no element: programs, windows, the clipboard.

What guards them: the policy on the program, the window's title or the text, before; that it is still that very process
and title, in the act; after it the exit that was seen, the place or state read back, the clipboard read back by another
client. Step (2) is the session's, which found the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.adapters.base import Dispatch, DispatchEnd
from deskcert.adapters.desktop import Operated, Operation
from deskcert.guard import payloads, policy, retry_gate
from deskcert.guard.delivery import judge_dispatch
from deskcert.guard.desktop_subject import desktop_fingerprint, desktop_subject
from deskcert.guard.machine import Open, Steps
from deskcert.guard.outcome import ActOutcome, Interrupted, SecretFactory
from deskcert.guard.single import Came, Single
from deskcert.guard.verification import NO_CLAIM, Verification
from deskcert_schema.vocabulary import Mode, VerificationScope

__all__ = ["DesktopRequest", "operate", "read_operation"]

_LEAST_BUDGET_MS: Final = 500
_CLAIMS: Final[Mapping[str, tuple[VerificationScope, str]]] = {
    "launch": (VerificationScope.ELEMENT_STATE, "the program runs and shows its tree"),
    "close-app": (VerificationScope.ELEMENT_STATE, "the process has ended"),
    "focus-window": (VerificationScope.ELEMENT_STATE, "the window has the keyboard"),
    "move-window": (VerificationScope.WINDOW_GEOMETRY, "the window is where it was asked to be"),
    "resize-window": (VerificationScope.WINDOW_GEOMETRY, "the window has the asked size"),
    "minimize": (VerificationScope.ELEMENT_STATE, "the window is minimized"),
    "maximize": (VerificationScope.ELEMENT_STATE, "the window is maximized"),
    "restore": (VerificationScope.ELEMENT_STATE, "the window is neither minimized nor maximized"),
    "clipboard-set": (VerificationScope.ELEMENT_VALUE, "the clipboard holds the asked text"),
}


@dataclass(frozen=True, slots=True)
class DesktopRequest:
    """`target` as it is recorded, from `desktop_subject`; `args` what the agent gave, without the clipboard's text."""

    action_no: int
    operation: Operation
    target: Mapping[str, Any]
    args: Mapping[str, Any]
    newest_snapshot_seq: int
    policy: policy.Policy
    gate: retry_gate.GateState
    run_key: bytes = field(repr=False)
    now_us: int
    secret: SecretFactory
    repeat_of: int | None = None
    timeout_ms: int = 10_000
    mode: Mode = Mode.HEADLESS
    prev_commit_us: int = 0

    @property
    def command(self) -> str:
        return self.operation.command

    @property
    def mac(self) -> str | None:
        text = self.operation.text
        return retry_gate.value_mac(self.run_key, text) if text is not None else None


def operate(request: DesktopRequest) -> Steps[ActOutcome]:
    """Driven like `pipeline.act`."""
    return _Operate(request).run()


def read_operation(command: str, operated: Operated) -> Verification:
    """The adapter's read-back as the claim of this command."""
    read = operated.read
    if read is None:
        return NO_CLAIM
    scope, claim = _CLAIMS[command]
    return Verification(scope, claim, read.satisfied, read.observed, read.reason, read.tolerance, read.unit)


class _Operate(Single[DesktopRequest]):
    operated: Operated | None = None

    def subject(self) -> policy.Subject:
        return desktop_subject(self.request.command, self.request.target, self._facts())

    def _facts(self) -> Mapping[str, Any]:
        request = self.request
        return policy.value_facts(request.policy, request.operation.text, request.command)

    def gate(self) -> Steps[retry_gate.GateDecision]:
        """There are no requests of a desktop application to be unanswered."""
        yield from ()
        request = self.request
        mark = desktop_fingerprint(request.command, request.target, request.mac)
        return retry_gate.decide(
            mark,
            request.gate.attempts.get(mark),
            unanswered=False,
            newest_snapshot=request.newest_snapshot_seq,
            repeat_of=request.repeat_of,
        )

    def base(self) -> dict[str, Any]:
        request = self.request
        args: dict[str, Any] = {"timeout_ms": request.timeout_ms} | dict(request.args)
        if request.operation.text is not None:
            args["value"] = request.secret(request.operation.text, True)
        if request.repeat_of is not None:
            args["repeat_of"] = request.repeat_of
        window = request.operation.window
        seen = {"box": list(window.box), "states": sorted(window.states)} if window is not None else {}
        return {
            "command": request.command,
            "args": args,
            "action": request.action_no,
            "target": dict(request.target),
            "evidence": {"desktop": seen},
        }

    def dispatch(self, opened: Open) -> Steps[None]:
        """Compared in the act by the adapter, which reads back, too."""
        budget = max(_LEAST_BUDGET_MS, self.request.timeout_ms)
        self.operated = yield from self.machine.operate(self.request.operation, seq=opened.seq, budget_ms=budget)

    def came(self, stop: tuple[DispatchEnd, Interrupted] | None) -> Came:
        operated = self.operated
        if operated is None:
            assert stop is not None
            operated = Operated(Dispatch(stop[0], reached=stop[1].reached, error=stop[1].reason))
        read = read_operation(self.request.command, operated)
        return Came(judge_dispatch(operated.dispatch, read), read, payloads.dispatch_json(operated.dispatch))

    def asked(self) -> dict[str, Any]:
        facts = self._facts()
        return {"value_rules": {k: v.value for k, v in facts.items()}} if facts else {}

    def mark(self) -> dict[str, Any]:
        mac = self.request.mac
        return {"value_mac": mac} if mac is not None else {}
