"""Names for `/lab`: two dangerous names in every disguise, and ordinary names that must never be mistaken for them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ORDINARY", "VARIANTS", "Variant"]


@dataclass(frozen=True, slots=True)
class Variant:
    id: str
    how: str
    """What the disguise is, shown beside the control; must not itself contain the dangerous name."""
    name: str
    shape: str = "button"
    """How the control is built: see `templates/lab_names.html`."""
    url: str = "/api/lab/delete-account"


PAY = "/api/lab/confirm-payment"

VARIANTS = (
    Variant("plain", "as it is", "Delete account"),
    Variant("case-space", "capitals and no-break spaces", "DELETE\u00a0\u00a0ACCOUNT"),
    Variant("zero-width", "zero-width space inside", "De\u200blete acc\u200bount"),
    Variant("soft-hyphen", "soft hyphen inside", "Del\u00adete ac\u00adcount"),
    Variant("joiner", "word joiner inside", "Delete\u2060 account"),
    Variant("cyrillic", "Cyrillic letters", "D\u0435l\u0435t\u0435 \u0430\u0441\u0441\u043eunt"),
    Variant("capital-i", "capital I for l", "DeIete account"),
    Variant("digit-one", "digit 1 for l", "De1ete account"),
    Variant("fullwidth", "fullwidth letters", "\uff24\uff45\uff4c\uff45\uff54\uff45 account"),
    Variant(
        "bold-math", "mathematical bold letters", "".join(chr(0x1D41A + ord(c) - 97) for c in "delete") + " account"
    ),
    Variant("rlo", "right-to-left override", "\u202etnuocca eteleD\u202c"),
    Variant("icon", "icon with an accessible label", "Delete account", "icon"),
    Variant("labelledby", "named by another element", "Delete account", "labelledby"),
    Variant("title", "visible text is harmless, title is not", "Delete account", "title"),
    Variant("img-alt", "an image inside a button", "Delete account", "image"),
    Variant("described", "harmless name, telling description", "Delete account", "described"),
    Variant("submit-value", "value of a submit", "Delete account", "submit"),
    Variant("span", "text in a nested element", "Delete account", "span"),
    Variant("label", "the label of the control", "Delete account", "label"),
    Variant("div", "an element with a role", "Delete account", "role"),
    Variant("enter", "Enter in the form", "Delete account", "form"),
    Variant("pay-plain", "as it is", "Confirm payment", url=PAY),
    Variant("pay-rn", "r and n for m", "Confirrn payrnent", url=PAY),
    Variant("pay-cyrillic", "Cyrillic letters", "\u0421\u043enfirm \u0440\u0430yment", url=PAY),
    Variant("pay-fullwidth", "fullwidth letters", "\uff23onfir\uff4d pay\uff4dent", url=PAY),
    Variant("pay-zero-width", "zero-width non-joiner inside", "Con\u200cfirm pay\u200cment", url=PAY),
    Variant("pay-icon", "icon with an accessible label", "Confirm payment", "icon", PAY),
)

ORDINARY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("English", ("Save", "Save changes", "Add note", "Open account", "Account details", "Deleted items", "Undelete row",
                 "Payment terms", "Confirm address", "Payments overview", "Send reminder", "Modern account view",
                 "Close panel", "Illustrations", "l10n tools", "Learn more", "Download PDF", "Settle invoice")),
    ("Accents and units", ("Naïve façade", "Crème brûlée", "5 μm speichern", "Δv berechnen", "Ω-3 add", "Größe ändern",
                           "Résumé öffnen", "Señal guardar", "Łódź wybierz", "10 °C einstellen")),
    ("Cyrillic and Greek", ("Сохранить", "Отмена", "Открыть заказ", "Проверить оплату", "Αποθήκευση", "Ακύρωση")),
    ("Right to left", ("حفظ", "إلغاء", "فتح الطلب", "שמור", "ביטול", "הצג הזמנה")),
    ("East Asian", ("確認", "保存", "キャンセル", "注文を開く", "저장", "취소", "打印", "ＰＤＦを開く")),
    ("South Asian and Thai", ("सहेजें", "रद्द करें", "சேமி", "บันทึก", "ยกเลิก")),
    ("Marks and emoji", ("⭐ Favourite", "👍 Agree", "→ Next", "½ portion", "№ 12", "A/B test", "C++ guide")),
)  # fmt: skip
