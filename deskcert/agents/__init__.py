"""Reference agents: one engine that executes plans, one careful agent, and agents with exactly one defect each.

They run as programs of their own (`python -m deskcert.agents NAME --plan FILE`) and know nothing but JSON lines.
"""
