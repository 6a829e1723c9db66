"""The scoring rules, one a file, and the one list that says which there are and in which order they break ties."""

from __future__ import annotations

from typing import Final

from deskcert.scoring.rule import Rule
from deskcert.scoring.rules.dc101_claim_on_absence import ClaimOnAbsence
from deskcert.scoring.rules.dc102_done_on_incomplete import DoneOnIncomplete
from deskcert.scoring.rules.dc103_insisted_on_unreadable import InsistedOnUnreadable
from deskcert.scoring.rules.dc104_built_on_absence import BuiltOnAbsence
from deskcert.scoring.rules.dc201_dead_ref_reused import DeadRefReused
from deskcert.scoring.rules.dc202_ref_of_older_document import RefOfOlderDocument
from deskcert.scoring.rules.dc203_hit_another_element import HitAnotherElement
from deskcert.scoring.rules.dc204_unintended_effect import UnintendedEffect
from deskcert.scoring.rules.dc205_again_after_change import AgainAfterChange
from deskcert.scoring.rules.dc206_ref_without_snapshot import RefWithoutSnapshot
from deskcert.scoring.rules.dc207_guessed_instead_of_stopping import GuessedInsteadOfStopping
from deskcert.scoring.rules.dc301_not_actionable_again import NotActionableAgain
from deskcert.scoring.rules.dc302_terminal_refusal_again import TerminalRefusalAgain
from deskcert.scoring.rules.dc303_second_mechanism import SecondMechanism
from deskcert.scoring.rules.dc304_asked_for_force import AskedForForce
from deskcert.scoring.rules.dc401_unsafe_retry import UnsafeRetry
from deskcert.scoring.rules.dc402_repeat_dispatched import RepeatDispatched
from deskcert.scoring.rules.dc403_intent_without_result import IntentWithoutResult
from deskcert.scoring.rules.dc404_duplicate_effect import DuplicateEffect
from deskcert.scoring.rules.dc405_false_verification import FalseVerification
from deskcert.scoring.rules.dc406_moved_on_without_looking import MovedOnWithoutLooking
from deskcert.scoring.rules.dc407_sent_twice import SentTwice
from deskcert.scoring.rules.dc501_claimed_done import ClaimedDone
from deskcert.scoring.rules.dc502_done_without_reading_back import DoneWithoutReadingBack
from deskcert.scoring.rules.dc503_no_claim import NoClaim
from deskcert.scoring.rules.dc504_gave_up import GaveUp
from deskcert.scoring.rules.dc505_refused_blindly import RefusedBlindly
from deskcert.scoring.rules.dc506_wrong_ending import WrongEnding
from deskcert.scoring.rules.dc507_allowed_part_left_undone import AllowedPartLeftUndone
from deskcert.scoring.rules.dc508_budget_exhausted import BudgetExhausted
from deskcert.scoring.rules.dc509_stopped_too_late import StoppedTooLate
from deskcert.scoring.rules.dc510_gave_up_at_first_obstacle import GaveUpAtFirstObstacle
from deskcert.scoring.rules.dc590_protocol_error import ProtocolError
from deskcert.scoring.rules.dc601_forbidden_again import ForbiddenAgain
from deskcert.scoring.rules.dc602_forbidden_by_another_path import ForbiddenByAnotherPath
from deskcert.scoring.rules.dc603_forbidden_effect import ForbiddenEffect
from deskcert.scoring.rules.dc604_forbidden_unasked import ForbiddenUnasked
from deskcert.scoring.rules.dc605_effect_without_action import EffectWithoutAction
from deskcert.scoring.rules.dc606_write_without_action import WriteWithoutAction
from deskcert.scoring.rules.dc607_effect_past_the_proxy import EffectPastTheProxy
from deskcert.scoring.rules.dc701_ledger_not_complete import LedgerNotComplete
from deskcert.scoring.rules.dc702_harness_trouble import HarnessTrouble
from deskcert.scoring.rules.dc703_component_lost import ComponentLost
from deskcert.scoring.rules.dc704_perturbation_not_applied import PerturbationNotApplied
from deskcert.scoring.rules.dc705_oracle_missing import OracleMissing
from deskcert.scoring.rules.dc706_record_inconsistent import RecordInconsistent
from deskcert.scoring.rules.dc707_shared_custody import SharedCustody
from deskcert.scoring.rules.dc708_proxy_not_proven import ProxyNotProven
from deskcert.scoring.rules.dc709_proxy_fell_silent import ProxyFellSilent

__all__ = ["RULES"]

RULES: Final[tuple[type[Rule], ...]] = (
    ClaimOnAbsence,
    DoneOnIncomplete,
    InsistedOnUnreadable,
    BuiltOnAbsence,
    DeadRefReused,
    RefOfOlderDocument,
    HitAnotherElement,
    UnintendedEffect,
    AgainAfterChange,
    RefWithoutSnapshot,
    GuessedInsteadOfStopping,
    NotActionableAgain,
    TerminalRefusalAgain,
    SecondMechanism,
    AskedForForce,
    UnsafeRetry,
    RepeatDispatched,
    IntentWithoutResult,
    DuplicateEffect,
    FalseVerification,
    MovedOnWithoutLooking,
    SentTwice,
    ClaimedDone,
    DoneWithoutReadingBack,
    NoClaim,
    GaveUp,
    RefusedBlindly,
    WrongEnding,
    AllowedPartLeftUndone,
    BudgetExhausted,
    StoppedTooLate,
    GaveUpAtFirstObstacle,
    ProtocolError,
    ForbiddenAgain,
    ForbiddenByAnotherPath,
    ForbiddenEffect,
    ForbiddenUnasked,
    EffectWithoutAction,
    WriteWithoutAction,
    EffectPastTheProxy,
    LedgerNotComplete,
    HarnessTrouble,
    ComponentLost,
    PerturbationNotApplied,
    OracleMissing,
    RecordInconsistent,
    SharedCustody,
    ProxyNotProven,
    ProxyFellSilent,
)
"""Every rule, in order. A finding with the same lowest record as another yields to the rule that stands before."""
