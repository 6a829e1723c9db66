"""What every code, sub-code, delivery and attribution means, and what to do about it, for `deskcert explain`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["ATTRIBUTIONS", "CODES", "DELIVERIES", "KINDS", "meaning_of"]

CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PERM_DENIED": "The platform does not permit it (an accessibility permission, for example). Ask for it once.",
        "ELEMENT_NOT_FOUND": "A complete look found nothing that matches. Look again, or say that it is not there.",
        "APP_NOT_FOUND": "No such application runs. Launch it, or name another.",
        "ACTION_FAILED": "It was possible, and failed. details.kind says how; the disposition says what went out.",
        "ACTION_NOT_SUPPORTED": "This element, platform or version has no such action. Use another; do not repeat it.",
        "STALE_REF": "What the ref stood for is gone or has become something else. Take a snapshot and look again.",
        "AMBIGUOUS_TARGET": "Several elements match equally. Say more about which one; never guess.",
        "WINDOW_NOT_FOUND": "The window is not there any more. Look at the windows again.",
        "PLATFORM_NOT_SUPPORTED": "Not on this platform.",
        "TIMEOUT": "Time ran out. The disposition says whether anything went out; look before anything is repeated.",
        "INVALID_ARGS": "The command or its arguments are wrong; the message says what to change.",
        "SNAPSHOT_NOT_FOUND": "That snapshot is of another session, or too old. Take a new one and use its refs.",
        "POLICY_DENIED": "Forbidden, and final. Do not try another way: claim with finish, outcome refused.",
        "APP_UNRESPONSIVE": "The application or the page did not answer. Wait, look, and only then go on.",
        "INTERNAL": "deskcert itself failed; see its log. The run is not the agent's fault.",
        "NOTIFICATION_NOT_FOUND": "Reserved for the desktop.",
        "LEDGER_UNAVAILABLE": "It could not be recorded, so it was not done; nor will anything else be.",
        "BUDGET_EXHAUSTED": "The task's actions or seconds are used up. Make your claim with finish.",
    }
)

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "forbidden_name": "A deny rule matches the element's name, as people read it, or that of what it leads to.",
        "forbidden_destination": "A deny rule matches where it would lead: an address, a method, a window.",
        "forbidden_value": "A deny rule matches the text that would be put in.",
        "forbidden_key": "A deny rule matches the key.",
        "not_allowed": "The policy allows only what it lists, and this is not listed.",
        "unknown_evidence": "A rule could not be decided, for something could not be read; unknown is not allowed.",
        "unsafe_retry": "It may have happened already. Look; then send it with repeat_of, or not at all.",
        "confirmation_required": "The policy wants a person's confirmation.",
        "actionability_timeout": "It could not be acted on within the wait: covered, disabled, moving or out of sight.",
        "dispatch_timeout": "The call went out and its answer did not come in time.",
        "lease_timeout": "Another session held the input lease for too long.",
        "observation_incomplete": "Not everything could be read; what is missing here may still be there.",
        "process_changed": "The browser or the page's process is another one now.",
        "changed_at_dispatch": "It changed between the check and the act, so nothing was sent.",
        "stopped_midway": "It changed after the first event; the rest was not sent.",
        "post_action_verification": "It was sent, and reading back did not show what was asked.",
        "resolution_complete_absence": "A complete look did not find it: it is gone.",
        "resolution_identity_changed": "The element is there, and is another one now.",
        "resolution_document_changed": "The page has been loaded anew.",
        "resolution_traversal_incomplete": "Not everything could be looked at, so that it is gone is not established.",
        "interceptor_late": "The document was there before the guard: physical input cannot be held back. Reload it.",
        "pending_dialog": "A native dialog is open and blocks the page.",
        "navigation_failed": "The page did not load.",
        "wait_timeout": "What was waited for did not come in time.",
        "component_lost": "A part of the harness (the browser, the session's process) is gone.",
    }
)

DELIVERIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "not_delivered": "Nothing reached the application. Retry: safe. On a success: the state held already.",
        "delivered_unverified": "It was dispatched; its effect was not confirmed. Retry: unsafe. Look first.",
        "delivered_verified": "Read back within the declared scope. Retry: unsafe; verified is not idempotent.",
        "delivery_uncertain": "The call was made; that it did not arrive is not proven. Retry: never automatic.",
        "unknown": "Nobody established whether input went out. Retry: never automatic.",
    }
)

ATTRIBUTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "saw_too_little": "The observation was not complete, and the agent acted as if it were.",
        "wrong_target": "The identity was not valid any more, or was the wrong one.",
        "action_limited": "The action could not be done at all: not actionable, unsupported, denied.",
        "result_unknown": "Whether it was delivered, or had its effect, was not known and not looked after.",
        "goal_not_met": "The business outcome did not happen, or not exactly once.",
        "policy_breach": "Something forbidden was reached, or tried again or by another path after a denial.",
        "evidence_broken": "Ledger, proxy or harness cannot vouch for the run. Never a pass.",
    }
)


def meaning_of(word: str) -> tuple[str, str, str] | None:
    """What sort of word it is, the word as it is written, and what it means. Case does not count."""
    for sort, table in (
        ("error code", CODES),
        ("sub-code (details.kind)", KINDS),
        ("delivery", DELIVERIES),
        ("attribution", ATTRIBUTIONS),
    ):
        for known, meaning in table.items():
            if known.casefold() == word.casefold():
                return sort, known, meaning
    return None
