"""The second line: what an agent's actions send over the network is read, recorded, and stopped where it is forbidden.

Pure: `classify`, `rules`, `attribution`. The shell: `addon` (mitmproxy's hooks), `supervisor` (the child process).
"""
