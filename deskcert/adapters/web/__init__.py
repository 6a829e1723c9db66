"""The web adapter, on Playwright's async API.

`browser.WebBrowser` starts one browser for several contexts; `adapter.WebAdapter` is one guarded page in it.
`find_browser` says which program would be started; it imports nothing heavy.
"""
