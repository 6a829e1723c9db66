"""Lines of a log that a pipeline would obey must not be a page's to write."""

from __future__ import annotations

import pytest

from deskcert.report.visible import log_line


@pytest.mark.parametrize(
    "line", ["::error::x", "   ::add-mask::y", "\t::stop-commands::z", "a ##[error]b", "##vso[task.x]"]
)
def test_no_line_is_a_command_and_what_was_there_can_be_read(line: str) -> None:
    shown = log_line(line)
    assert not shown.lstrip().startswith("::")
    assert "##[" not in shown
    assert "##vso[" not in shown
    assert shown.replace("\\u{3a}", ":").replace("\\u{23}", "#") == line


@pytest.mark.parametrize("line", ["std::vector", "## Heading", "a ::b", "#[derive]", ""])
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert log_line(line) == line
