"""The pipeline of the page commands, which have no element and no same-task form: navigation, history, dialogs, tabs.

What guards them (adapters.md): the policy on the address, or on the dialog and what opened it, before; after it the
committed document, or that the dialog or the tab is closed.
"""

from __future__ import annotations

from typing import Any

from deskcert.adapters.base import Dialog, DispatchEnd, Navigation, PageAction
from deskcert.guard import payloads, policy, retry_gate, verification
from deskcert.guard.delivery import judge_navigation
from deskcert.guard.machine import Open, Steps
from deskcert.guard.outcome import ActOutcome, Interrupted, NavigateRequest
from deskcert.guard.single import Came, Single

__all__ = ["navigate"]


def navigate(request: NavigateRequest) -> Steps[ActOutcome]:
    """Driven like `pipeline.act`."""
    return _Navigate(request).run()


class _Navigate(Single[NavigateRequest]):
    navigation: Navigation | None = None

    def subject(self) -> policy.Subject:
        request = self.request
        return policy.page_subject(request.command, request.target, request.window)

    def gate(self) -> Steps[retry_gate.GateDecision]:
        request = self.request
        mark = retry_gate.page_fingerprint(request.command, request.target)
        previous = request.gate.attempts.get(mark)
        unanswered = False
        if previous is not None:
            unanswered = retry_gate.is_unanswered((yield from self.machine.requests(previous.seq)))
        newest = request.newest_snapshot_seq
        return retry_gate.decide(
            mark, previous, unanswered=unanswered, newest_snapshot=newest, repeat_of=request.repeat_of
        )

    def base(self) -> dict[str, Any]:
        return payloads.navigation_base(self.request)

    def dispatch(self, opened: Open) -> Steps[None]:
        request = self.request
        self.navigation = yield from self.machine.go_to(
            request.url, seq=opened.seq, budget_ms=request.timeout_ms, action=self._page_action()
        )

    def _page_action(self) -> PageAction | None:
        request, dialog = self.request, self.request.dialog
        if request.command == "navigate":
            return None
        asked = Dialog(dialog["id"], dialog["type"], dialog["text"]) if dialog is not None else None
        tab = request.tab["id"] if request.tab is not None else None
        return PageAction(request.command, request.url, asked, request.text, tab)

    def came(self, stop: tuple[DispatchEnd, Interrupted] | None) -> Came:
        """The committed document is the read-back."""
        request, navigation = self.request, self.navigation
        if navigation is None:
            assert stop is not None
            navigation = Navigation(stop[0], error=stop[1].reason)
        read = verification.read_page(request.command, navigation, request.window.document, request.url)
        judgement = judge_navigation(navigation, read)
        return Came(judgement, read, payloads.navigation_json(navigation), navigation.dialog)
