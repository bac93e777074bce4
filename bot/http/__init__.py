"""The host over HTTP: health, the API that the page and the commands stand on, and the page itself.

Owns the login, the event streams and the listening socket; what is said and done is the host's, behind ``HostView``.
Nothing but health and the page's empty shell is answered without the token or a cookie that was given for it.
Failure: every error is JSON with an ``error`` that says what to do; a defect is logged under an id that the answer names.

``bot.http.host_view`` is what the host implements, ``bot.http.server`` serves it, ``bot.http.client`` asks it. Import from there:
the client must not load the server.
"""
