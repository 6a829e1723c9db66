"""The words of the contract, once. Every enum's value is what stands on the wire and in the ledger.

Sources: the design's `contract.md` (codes, dispositions), `formats.md` (claims, outcomes, record kinds).
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "Attribution",
    "Check",
    "CheckStatus",
    "ClaimOutcome",
    "Code",
    "Command",
    "Confidence",
    "DetailKind",
    "Expected",
    "Mode",
    "NetworkHow",
    "PipelinePoint",
    "PolicyEffect",
    "RecordKind",
    "RunOutcome",
    "Severity",
    "StepOutcome",
    "VerificationScope",
]


class Code(StrEnum):
    """Error codes an agent branches on. `NOTIFICATION_NOT_FOUND` is reserved for the desktop."""

    PERM_DENIED = "PERM_DENIED"
    ELEMENT_NOT_FOUND = "ELEMENT_NOT_FOUND"
    APP_NOT_FOUND = "APP_NOT_FOUND"
    ACTION_FAILED = "ACTION_FAILED"
    ACTION_NOT_SUPPORTED = "ACTION_NOT_SUPPORTED"
    STALE_REF = "STALE_REF"
    AMBIGUOUS_TARGET = "AMBIGUOUS_TARGET"
    WINDOW_NOT_FOUND = "WINDOW_NOT_FOUND"
    PLATFORM_NOT_SUPPORTED = "PLATFORM_NOT_SUPPORTED"
    TIMEOUT = "TIMEOUT"
    INVALID_ARGS = "INVALID_ARGS"
    SNAPSHOT_NOT_FOUND = "SNAPSHOT_NOT_FOUND"
    POLICY_DENIED = "POLICY_DENIED"
    APP_UNRESPONSIVE = "APP_UNRESPONSIVE"
    INTERNAL = "INTERNAL"
    NOTIFICATION_NOT_FOUND = "NOTIFICATION_NOT_FOUND"
    LEDGER_UNAVAILABLE = "LEDGER_UNAVAILABLE"
    """Nothing was dispatched because it could not be recorded."""
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    """The scenario's actions or seconds are used up."""


class DetailKind(StrEnum):
    """The stable sub-code in `error.details.kind`."""

    FORBIDDEN_NAME = "forbidden_name"
    FORBIDDEN_DESTINATION = "forbidden_destination"
    FORBIDDEN_VALUE = "forbidden_value"
    FORBIDDEN_KEY = "forbidden_key"
    NOT_ALLOWED = "not_allowed"
    """Allow-list mode, and no allow rule matched."""
    UNKNOWN_EVIDENCE = "unknown_evidence"
    UNSAFE_RETRY = "unsafe_retry"
    CONFIRMATION_REQUIRED = "confirmation_required"
    ACTIONABILITY_TIMEOUT = "actionability_timeout"
    DISPATCH_TIMEOUT = "dispatch_timeout"
    LEASE_TIMEOUT = "lease_timeout"
    OBSERVATION_INCOMPLETE = "observation_incomplete"
    PROCESS_CHANGED = "process_changed"
    CHANGED_AT_DISPATCH = "changed_at_dispatch"
    STOPPED_MIDWAY = "stopped_midway"
    """A difference was seen after the first event; the rest was not sent."""
    POST_ACTION_VERIFICATION = "post_action_verification"
    RESOLUTION_COMPLETE_ABSENCE = "resolution_complete_absence"
    RESOLUTION_IDENTITY_CHANGED = "resolution_identity_changed"
    RESOLUTION_DOCUMENT_CHANGED = "resolution_document_changed"
    RESOLUTION_TRAVERSAL_INCOMPLETE = "resolution_traversal_incomplete"
    INTERCEPTOR_LATE = "interceptor_late"
    PENDING_DIALOG = "pending_dialog"
    NAVIGATION_FAILED = "navigation_failed"
    WAIT_TIMEOUT = "wait_timeout"
    """What was waited for did not come in time."""
    COMPONENT_LOST = "component_lost"


class RecordKind(StrEnum):
    """Kinds a ledger line may have. A reader keeps and counts kinds it does not know."""

    RUN_START = "run.start"
    RUN_END = "run.end"
    KEY_EPOCH = "key.epoch"
    RECOVERY = "recovery"
    OBSERVATION = "observation"
    ACTION_REFUSED = "action.refused"
    ACTION_DENIED = "action.denied"
    ACTION_INTENT = "action.intent"
    ACTION_RESULT = "action.result"
    NET_ALLOWED = "net.allowed"
    NET_BLOCKED = "net.blocked"
    NET_ANSWER = "net.answer"
    NET_HEARTBEAT = "net.heartbeat"
    CANARY = "canary"
    AGENT_EVENT = "agent.event"
    COMPONENT_LOST = "component.lost"
    PERTURBATION = "perturbation"
    CLAIM = "claim"
    ORACLE = "oracle"
    REDACTION = "redaction"
    BLOB_MISSING = "blob.missing"
    PICTURE = "picture"
    SURFACE = "surface"
    """A tab that came or went, whoever opened or closed it."""
    DOWNLOAD = "download"


class PipelinePoint(StrEnum):
    """Where the pipeline says it is, so that a test can change the application, or kill a process, there."""

    OBSERVED = "observed"
    RESOLVED = "resolved"
    ACTIONABLE = "actionable"
    LEASED = "leased"
    INTENT_RECORDED = "intent_recorded"
    DISPATCHED = "dispatched"
    REACHED = "reached"
    VERIFIED = "verified"
    RESULT_RECORDED = "result_recorded"


class Mode(StrEnum):
    """How an action may touch the application; `headed` is a permission, never a fallback."""

    HEADLESS = "headless"
    FOCUS_FALLBACK = "focus_fallback"
    HEADED = "headed"


class Check(StrEnum):
    """Actionability checks, in the order in which a failing one is named."""

    ATTACHED = "attached"
    SUPPORTED_ACTION = "supported_action"
    EDITABLE = "editable"
    MODE = "mode"
    VISIBLE = "visible"
    ENABLED = "enabled"
    STABLE = "stable"
    RECEIVES_EVENTS = "receives_events"
    DROP_VISIBLE = "drop_visible"
    """Of the place where a drag ends, like the next two."""
    DROP_ENABLED = "drop_enabled"
    DROP_RECEIVES_EVENTS = "drop_receives_events"


class CheckStatus(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    DEFERRED = "deferred"
    """Out of view: judged in the dispatch task, after the preparatory scroll."""


class StepOutcome(StrEnum):
    ATTEMPTED = "attempted"
    SKIPPED = "skipped"
    SUCCEEDED = "succeeded"


class VerificationScope(StrEnum):
    NONE = "none"
    ELEMENT_STATE = "element_state"
    ELEMENT_VALUE = "element_value"
    WINDOW_GEOMETRY = "window_geometry"
    NAVIGATION = "navigation"


class NetworkHow(StrEnum):
    """How it is known which action caused a request."""

    CAUSAL = "causal"
    WINDOW = "window"
    NONE = "none"


class ClaimOutcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    UNSURE = "unsure"


class Expected(StrEnum):
    """What the right outcome of a scenario is."""

    COMPLETE = "complete"
    REFUSE = "refuse"
    STOP = "stop"


class RunOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    REFUSED_CORRECTLY = "refused_correctly"
    UNSAFE = "unsafe"
    INCONCLUSIVE = "inconclusive"
    CONTAMINATED = "contaminated"
    NOT_RUN = "not_run"


class Attribution(StrEnum):
    """The five questions, and the two ways in which trust itself fails."""

    SAW_TOO_LITTLE = "saw_too_little"
    WRONG_TARGET = "wrong_target"
    ACTION_LIMITED = "action_limited"
    RESULT_UNKNOWN = "result_unknown"
    GOAL_NOT_MET = "goal_not_met"
    POLICY_BREACH = "policy_breach"
    EVIDENCE_BROKEN = "evidence_broken"


class Severity(StrEnum):
    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"
    """Zero tolerance: a run with such a finding is `unsafe`."""


class Confidence(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"


class PolicyEffect(StrEnum):
    """What a deny rule that matches does."""

    DENY = "deny"
    REQUIRE_CONFIRMATION = "require_confirmation"
    RECORD_ONLY = "record_only"


class Command(StrEnum):
    """Every command of the contract, also those that this version answers with `ACTION_NOT_SUPPORTED`."""

    SNAPSHOT = "snapshot"
    FIND = "find"
    GET = "get"
    IS = "is"
    SCREENSHOT = "screenshot"
    WAIT = "wait"
    LIST_SURFACES = "list-surfaces"
    LIST_WINDOWS = "list-windows"
    CLICK = "click"
    DOUBLE_CLICK = "double-click"
    TRIPLE_CLICK = "triple-click"
    RIGHT_CLICK = "right-click"
    HOVER = "hover"
    FOCUS = "focus"
    TYPE = "type"
    SET_VALUE = "set-value"
    CLEAR = "clear"
    PRESS = "press"
    SELECT = "select"
    CHECK = "check"
    UNCHECK = "uncheck"
    TOGGLE = "toggle"
    EXPAND = "expand"
    COLLAPSE = "collapse"
    SCROLL = "scroll"
    SCROLL_TO = "scroll-to"
    DRAG = "drag"
    UPLOAD = "upload"
    NAVIGATE = "navigate"
    BACK = "back"
    FORWARD = "forward"
    RELOAD = "reload"
    TABS = "tabs"
    TAB_FOCUS = "tab-focus"
    TAB_CLOSE = "tab-close"
    DIALOG_ACCEPT = "dialog-accept"
    DIALOG_DISMISS = "dialog-dismiss"
    LAUNCH = "launch"
    CLOSE_APP = "close-app"
    LIST_APPS = "list-apps"
    FOCUS_WINDOW = "focus-window"
    MOVE_WINDOW = "move-window"
    RESIZE_WINDOW = "resize-window"
    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"
    RESTORE = "restore"
    CLIPBOARD_GET = "clipboard-get"
    CLIPBOARD_SET = "clipboard-set"
    STATUS = "status"
    BATCH = "batch"
    FINISH = "finish"
