"""Application logs: structlog, to standard error and `run.log`. For whoever runs deskcert; never evidence."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["log_to"]


@contextmanager
def log_to(path: Path, *, scrub: Callable[[str], str] = str) -> Iterator[None]:
    """Everything from INFO on goes to `path`; warnings and worse also to standard error. Each line passes `scrub`."""
    import structlog

    path.parent.mkdir(parents=True, exist_ok=True)
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    to_file = logging.FileHandler(path, encoding="utf-8")
    to_file.setLevel(logging.INFO)
    to_screen = logging.StreamHandler(sys.stderr)
    to_screen.setLevel(logging.WARNING)
    renderer = structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "logger", "event"])

    def scrubbed(_logger: object, _name: str, line: Any) -> str:
        return scrub(str(line))

    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer, scrubbed],
        foreign_pre_chain=shared,
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    root = logging.getLogger("deskcert")
    root.setLevel(logging.INFO)
    root.propagate = False
    for handler in (to_file, to_screen):
        handler.setFormatter(formatter)
        root.addHandler(handler)
    try:
        yield
    finally:
        for handler in (to_file, to_screen):
            root.removeHandler(handler)
            handler.close()
