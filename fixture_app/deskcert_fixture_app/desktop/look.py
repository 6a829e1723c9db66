"""How the window looks. Kept apart, so that nobody looks for behaviour in it."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
QMainWindow, QWidget#page { background: #f6f7f4; color: #22302b; font-size: 13px; }
QMenuBar { background: #1f3d36; color: #e8efe9; padding: 2px; }
QMenuBar::item:selected { background: #2d574c; }
QWidget#navigation { background: #1f3d36; }
QWidget#navigation QPushButton { background: transparent; color: #cfe0d8; border: none; border-radius: 4px;
  padding: 8px 14px; font-weight: 600; }
QWidget#navigation QPushButton:hover { background: #2d574c; color: white; }
QLabel#brand { color: white; font-size: 16px; font-weight: 700; padding: 0 18px 0 8px; }
QLabel#status { background: #e3ece6; color: #24463d; padding: 7px 16px; border-bottom: 1px solid #cfdcd4; }
QLabel#heading { font-size: 20px; font-weight: 700; color: #1f3d36; padding: 6px 0; }
QWidget#row { background: white; border: 1px solid #dfe5df; border-radius: 6px; }
QWidget#row QLabel { color: #33433d; background: transparent; border: none; }
QLabel#number { font-weight: 700; color: #1f3d36; }
QWidget#row QLabel#number { color: #1f3d36; }
QWidget#row QLabel#state { color: #6a5a1f; background: #f5eed2; border-radius: 8px; padding: 2px 8px; }
QWidget#page QLabel { color: #33433d; }
QWidget#page QLabel#entry { background: white; border: 1px solid #dfe5df; border-radius: 6px; padding: 7px 12px; }
QPushButton { background: white; border: 1px solid #b9c7bf; border-radius: 4px; padding: 5px 12px; color: #1f3d36; }
QPushButton:hover { background: #eef4f0; }
QPushButton:disabled { color: #a4afa9; background: #f0f2f0; border-color: #dde3df; }
QPushButton#danger { color: #9a2a1f; border-color: #dcb2ac; }
QPushButton#danger:disabled { color: #c9b0ac; background: #f4f1f0; border-color: #e6dcda; }
QLineEdit, QPlainTextEdit { background: white; border: 1px solid #b9c7bf; border-radius: 4px; padding: 5px;
  color: #22302b; }
QGroupBox { font-weight: 600; color: #1f3d36; border: 1px solid #d5ded8; border-radius: 6px; margin-top: 12px;
  padding: 14px 10px 8px 10px; background: white; }
QGroupBox::title { subcontrol-origin: margin; left: 10px; padding: 0 4px; }
QCheckBox { color: #22302b; }
"""
